"""Benches of the league on the command line: what they are run with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nodenova.cli.app import seeds_of
from nodenova.errors import SettingError, one_of

if TYPE_CHECKING:
    from nodenova.bench.grid import RunSpec
    from nodenova.bench.sweep import Source


def runs_of_league(
    bench: str,
    datasets: Sequence[str] | None,
    methods: Sequence[str] | None,
    seeds: str | None,
    source: Source,
    setting: str,
    refused: Mapping[str, bool],
) -> list[RunSpec]:
    """The runs that were asked for.

    Args:
        bench: One of the league.
        datasets: Names or files; the bench's own that are on this machine unless given.
        methods: Who takes part; the bench's own unless given.
        seeds: As on the command line; as many as the protocol has unless given.
        source: Where datasets are found.
        setting: "transductive" or "inductive".
        refused: Options that a protocol leaves no room for, and whether they were given.

    Returns:
        The runs.

    Raises:
        SettingError: An option that does not apply was given, or nothing is here to run on.
    """
    from nodenova.bench.league.grid import LEAGUE, league_runs
    from nodenova.bench.league.worlds import INDUCTIVE
    from nodenova.data.splits import SETTINGS

    if setting not in SETTINGS:
        raise one_of("setting", setting, SETTINGS)
    if setting != SETTINGS[0] and bench not in INDUCTIVE:
        refused = {**refused, "--setting": True}
    given = [option for option, is_given in refused.items() if is_given]
    if given:
        raise SettingError(f"{given[0]}: {bench} is a protocol, which says that itself")
    usual = LEAGUE[bench]
    names = list(datasets) if datasets is not None else _here(usual.datasets, source.data_root)
    if not names:
        wanted = ", ".join(usual.datasets)
        raise SettingError(f"none of the graphs of {bench} ({wanted}) is here: give --data-root")
    graphs = [replace(source.load(name), name=name) for name in names]
    numbers = seeds_of(str(usual.seeds) if seeds is None else seeds)
    return league_runs(bench, graphs, methods or usual.entrants, numbers, setting)


def _here(names: Sequence[str], data_root: str | None) -> list[str]:
    from nodenova.io.datasets import DATASETS, find_root, is_on_disk

    root = find_root(None if data_root is None else Path(data_root))

    def is_here(name: str) -> bool:
        if name not in DATASETS:
            return True  # made on the spot
        return DATASETS[name].ships or (root is not None and is_on_disk(DATASETS[name], root))

    return [name for name in names if is_here(name)]
