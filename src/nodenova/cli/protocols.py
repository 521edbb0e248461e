"""nodenova protocols: list the protocols, and write one as files with a grader."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from nodenova.cli.app import (
    RESEARCH,
    DataRoot,
    Quiet,
    app,
    load_named,
    loading,
    out,
    seeds_of,
)
from nodenova.display import plural
from nodenova.errors import SettingError

protocols = typer.Typer(
    invoke_without_command=True,
    help="List the protocols; write one as files with a grader that needs no nodenova.",
)
app.add_typer(protocols, name="protocols", rich_help_panel=RESEARCH)


@protocols.callback()
def list_protocols(context: typer.Context) -> None:
    """List the protocols if no command is named."""
    if context.invoked_subcommand is not None:
        return
    from nodenova.bench.protocol_files import KNOWN, NAMES

    table = Table(box=None, pad_edge=False, show_header=False)
    for name, meaning in KNOWN.items():
        table.add_row(name, meaning)
    out.print(table, highlight=False)
    single = ", ".join(name for name in NAMES if name not in KNOWN)
    out.print(f"\nOne of its splits alone: {single}.", highlight=False, soft_wrap=True)
    out.print("Write one as files: nodenova protocols export NAME --dataset citeseer --out DIR")


@protocols.command()
def export(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a protocol; see `nodenova protocols`.")],
    dataset: Annotated[str | None, typer.Option(help="Name of a dataset; see `nodenova datasets`.")] = None,
    graph: Annotated[Path | None, typer.Option(help="Your own graph with labels: npz, GraphML, GML, or a folder with nodes.* and edges.*.")] = None,
    data_root: DataRoot = None,
    split: Annotated[int, typer.Option(help="Number of the published split, where there are several (Wiki-CS).")] = 0,
    num_old: Annotated[int | None, typer.Option(help="Number of old classes in paper and class-splits (default: as in the paper; half for other graphs).")] = None,
    setting: Annotated[str, typer.Option(help="transductive (see the whole graph) or inductive (paper, class-splits, mixed, stages: only classes met).")] = "transductive",
    seeds: Annotated[str, typer.Option(help="Number of seeds, or a list: 3 means 0,1,2; 4,7 means those.")] = "1",
    folder: Annotated[Path, typer.Option("--out", help="Folder for the files.")] = Path("protocol"),
    keep_graph: Annotated[bool, typer.Option("--keep-graph/--no-keep-graph", help="Write graph.npz: features and edges, without labels.")] = True,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the export in --out.")] = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Write the splits of a protocol as files: node ids, answers apart, and a grader.

    A method in any language reads splits/ and graph.npz, and writes predictions.csv; grade.py
    prints the scores of nodenova with Python and NumPy alone. README.md states what a method may
    read. The folder is written whole or not at all.
    """
    seed_list = seeds_of(seeds)
    with loading(quiet, "loading the graph"):
        labelled, default_old = load_named(dataset, graph, data_root, split)
        from nodenova.bench.protocol_files import splits_of, write_protocol

    usual = default_old or (labelled.num_classes + 1) // 2
    count = usual if num_old is None else num_old
    if not 1 <= count < labelled.num_classes:
        raise SettingError(
            f"--num-old is {count}, but {labelled.name} has {labelled.num_classes} classes"
        )
    if num_old is not None and name not in ("paper", "class-splits"):
        raise SettingError(f"--num-old cannot be changed for {name}: its protocol fixes it")
    splits = splits_of(name, labelled, seed_list, count, setting)
    readme = write_protocol(
        folder, name, labelled, splits, keep_graph=keep_graph, overwrite=overwrite
    )
    if not quiet:
        written = f"Written: {plural(len(splits), 'split')} to {folder}; read {readme}"
        out.print(escape(written), highlight=False, soft_wrap=True)
        command = f"python {folder / 'grade.py'} {splits[0].name} predictions.csv"
        out.print(escape(f"Grade: {command}"), highlight=False, soft_wrap=True)
