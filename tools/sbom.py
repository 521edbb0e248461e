"""Write a software bill of materials of the pinned set, as CycloneDX JSON, and check its licenses.

Components are the packages that `pip install nodenova` and its extras for users bring in, with the
versions of constraints.txt and the licenses of their own metadata, if they are installed
here. The document has neither a date nor a random number: the same environment gives the same
bytes. Exit code 1 if a license is missing or not allowed.

    python tools/sbom.py                    # build/nodenova-VERSION.cdx.json
    python tools/sbom.py --check            # the licenses of all that is installed and pinned
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import uuid
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from nodenova import __version__

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
DEVELOPMENT = ("docs", "dev")  # extras that are not for users
# What classifiers and free text call a license, by what stands in them.
SPDX = (
    ("mozilla public license 2.0", "MPL-2.0"),
    ("apache", "Apache-2.0"),
    ("gnu general public", "GPL-2.0-or-later"),
    ("python software foundation", "PSF-2.0"),
    ("isc", "ISC"),
    ("bsd 2-clause", "BSD-2-Clause"),
    ("bsd", "BSD-3-Clause"),
    ("mit license", "MIT"),
)
# Allowed in what users install: permissive licenses, and MPL-2.0, which is about its own files.
ALLOWED = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause",
    "BSL-1.0", "CC0-1.0", "CNRI-Python", "ISC", "MIT", "MPL-2.0", "PSF-2.0", "Zlib",
}  # fmt: skip
# Packages whose metadata name no license; read from the files that they ship.
STATED = {"asttokens": "Apache-2.0"}
# Used by tests and benchmarks alone, never installed with an extra for users.
TOLERATED = {"igraph": "GPL-2.0-or-later"}


def pinned(path: Path = CONSTRAINTS) -> dict[str, str]:
    """Versions of constraints.txt by normalized name."""
    lines = re.findall(r"^([\w.-]+)==(\S+)", path.read_text(encoding="utf-8"), re.M)
    return {canonicalize_name(name): version for name, version in lines}


def installed(name: str) -> Distribution | None:
    """The installed distribution of a package, or None."""
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def requirements(found: Distribution, extras: tuple[str, ...] = ()) -> set[tuple[str, str]]:
    """(name, its extra or "") of what a distribution needs on this machine."""
    needed: set[tuple[str, str]] = set()
    for line in found.requires or []:
        one = Requirement(line)
        if one.marker is None or any(one.marker.evaluate({"extra": e}) for e in ("", *extras)):
            name = canonicalize_name(one.name)
            needed |= {(name, "")} | {(name, extra) for extra in one.extras}
    return needed


def closure(extras: tuple[str, ...]) -> dict[str, set[str]]:
    """Names of what nodenova and these extras bring in, each with what it needs itself."""
    graph: dict[str, set[str]] = {}
    waiting = [("nodenova", extra) for extra in ("", *extras)]
    seen = set(waiting)
    while waiting:
        name, extra = waiting.pop()
        found = installed(name)
        if found is None:
            continue
        needed = requirements(found, (extra,) if extra else ())
        graph.setdefault(name, set()).update(other for other, _ in needed if installed(other))
        waiting += needed - seen
        seen |= needed
    return graph


def license_of(found: Distribution) -> str:
    """SPDX expression of a distribution; an empty text if its metadata name none.

    >>> license_of(distribution("numpy")).split()[0]
    'BSD-3-Clause'
    """
    meta = found.metadata
    if "License-Expression" in meta:
        return str(meta["License-Expression"])
    name = canonicalize_name(meta["Name"])
    if name in STATED:
        return STATED[name]
    text = meta["License"].strip().split("\n")[0] if "License" in meta else ""
    if text and all(part in ALLOWED for part in text.split(" AND ")):
        return text
    classifiers = meta.get_all("Classifier") or []
    named = [line.split("::")[-1] for line in classifiers if line.startswith("License ::")]
    for one in (*named, text):
        for part, spdx in SPDX:
            if part in one.lower():
                return spdx
    return ""


def identifiers(expression: str) -> list[str]:
    """Licenses that all hold; of alternatives, the first that is allowed.

    >>> identifiers("Apache-2.0 OR GPL-3.0-only"), identifiers("MIT AND PSF-2.0")
    (['Apache-2.0'], ['MIT', 'PSF-2.0'])
    """
    found = []
    for part in re.split(r" AND ", expression.replace("(", "").replace(")", "")):
        choices = part.split(" OR ")
        found.append(next((one for one in choices if one in ALLOWED), choices[0]))
    return found


def problems(names: set[str], users: set[str]) -> list[str]:
    """One sentence for each license of `names` that is missing or not allowed."""
    wrong = []
    for name in sorted(names):
        found = installed(name)
        if found is None:
            continue
        expression = license_of(found)
        tolerated = name not in users and TOLERATED.get(name) == expression
        refused = [one for one in identifiers(expression) if one not in ALLOWED]
        if not expression:
            wrong.append(f"{name}: its metadata name no license; read its files, add it to STATED")
        elif refused and not tolerated:
            wrong.append(f"{name}: {', '.join(refused)} is not among the allowed licenses")
    return wrong


def bill(extras: tuple[str, ...]) -> dict[str, Any]:
    """The document: CycloneDX 1.6."""
    graph = closure(extras)
    versions = {name: distribution(name).version for name in graph} | pinned()
    versions["nodenova"] = __version__  # the metadata of an editable installation may be older

    def reference(name: str) -> str:
        return f"pkg:pypi/{name}@{versions[name]}"

    components = []
    for name in sorted(graph.keys() - {"nodenova"}):
        expression = license_of(distribution(name))
        components.append(
            {
                "type": "library",
                "bom-ref": reference(name),
                "name": name,
                "version": versions[name],
                "purl": reference(name),
                "licenses": [{"expression": expression}] if expression else [],
            }
        )
    links = [
        {"ref": reference(name), "dependsOn": sorted(map(reference, needed - {name}))}
        for name, needed in sorted(graph.items())
    ]
    body = {"components": components, "dependencies": links}
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    root = reference("nodenova")
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": root,
                "name": "nodenova",
                "version": __version__,
                "purl": root,
                "licenses": [{"expression": "MIT"}],
            }
        },
        **body,
    }


def extras_for_users() -> tuple[str, ...]:
    """Names of all extras but those for development."""
    names = distribution("nodenova").metadata.get_all("Provides-Extra") or []
    return tuple(sorted(set(names) - set(DEVELOPMENT)))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="check licenses, write nothing")
    parser.add_argument("--out", type=Path, help="the file to write")
    options = parser.parse_args(argv)
    extras = extras_for_users()
    users = set(closure(extras))
    wrong = problems(users if not options.check else users | pinned().keys(), users)
    for line in wrong:
        print(line, file=sys.stderr)
    if options.check or wrong:
        return int(bool(wrong))
    document = bill(extras)
    version = document["metadata"]["component"]["version"]
    path = options.out or ROOT / f"build/nodenova-{version}.cdx.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"Written: {path} with {len(document['components'])} components")
    return 0


if __name__ == "__main__":
    sys.exit(main())
