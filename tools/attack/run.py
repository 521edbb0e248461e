"""Run parts of the attack and write their results.

    python -m tools.attack [part ...] [--seed N] [--scale X] [--out DIR]

Parts: fuzz, killer, races, metamorphic, long_run, mutants. Each is a module with
`run(seed, scale, out)`, which returns its figures and failures; the result is written to
results/attack/<part>.json. Then `report` writes docs/reliability.md from all results.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results" / "attack"
PARTS = ("fuzz", "killer", "races", "metamorphic", "long_run", "mutants")


def main(arguments: list[str] | None = None) -> int:
    """Run the parts that are named, or all; return 1 if one of them has a failure."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "python -m tools.attack", None, __doc__, formatter_class=layout
    )
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)}, report")
    parser.add_argument("--seed", type=int, default=0, help="seed of all mutations")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the cases to run")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--case", help="one case of the fuzzer, like npz:17")
    parser.add_argument("--formats", help="formats of the fuzzer, separated by commas")
    given = parser.parse_args(arguments)
    if given.case:
        from .fuzz import show_case

        return show_case(given.seed, given.case)
    more = {"fuzz": {"forms": given.formats.split(",")}} if given.formats else {}
    failed = 0
    for part in given.parts or (*PARTS, "report"):
        if part == "report":
            from .report import write

            print(f"Written: {write(given.out)}")
        else:
            failed += len(run_part(part, given.seed, given.scale, given.out, **more.get(part, {})))
    return int(failed > 0)


def run_part(part: str, seed: int, scale: float, out: Path, **more: Any) -> list[Any]:
    """Run one part, write its result, and return its failures."""
    name = f"{__package__}.{part}"
    if part not in PARTS or find_spec(name) is None:
        raise SystemExit(f"there is no part {part!r}; the parts are {', '.join(PARTS)}")
    began = time.monotonic()
    result = import_module(name).run(seed, scale, out, **more)
    result = {"part": part, "seed": seed, "scale": scale, "commit": commit()} | result
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{part}.json").write_text(json.dumps(result, indent=1) + "\n")
    failures: list[Any] = result.get("failures", [])
    print(f"{part}: {len(failures)} distinct failures, {time.monotonic() - began:.0f} s")
    return failures


def commit() -> str:
    """Return the commit that is attacked, with a + if files differ from it."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "src")
    return git("rev-parse", "--short=10", "HEAD") + ("+" if changed else "")
