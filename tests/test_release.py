"""What is published works where this checkout is not: the wheel, the sdist, and what they hold."""

from __future__ import annotations

import hashlib
import json
import os
import re
import site
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

import nodenova as nova
from tools import sbom

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src"
EXTRAS = {"parquet", "networkx", "docs", "dev"}


class Built(NamedTuple):
    wheel: Path
    names: list[str]
    metadata: Message


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The wheel, as the build backend makes it of this checkout."""
    from hatchling.build import build_wheel

    folder = tmp_path_factory.mktemp("wheel")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        wheel = folder / build_wheel(str(folder))
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        return Built(wheel, names, message_from_bytes(archive.read(metadata)))


def run(folder: Path, *command: str | Path) -> str:
    """What a command says, run in `folder` with nothing of this checkout on its path."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stderr}"
    return done.stdout


def environment_in(folder: Path, *options: str) -> Path:
    """The folder of the programs of a new virtual environment."""
    run(folder, sys.executable, "-m", "venv", *options, "env")
    return folder / "env" / ("Scripts" if os.name == "nt" else "bin")


def test_the_wheel_holds_every_file_of_the_package_and_no_other(built: Built) -> None:
    kept = [path for path in SRC.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    package = {path.relative_to(SRC).as_posix() for path in kept}
    assert {name for name in built.names if ".dist-info/" not in name} == package
    assert {Path(name).suffix for name in package} >= {".py", ".pyi", ".npz", ".json", ".j2", ".js"}
    assert {"nodenova/py.typed", "nodenova/data/shipped/wordnet.npz"} <= package


def test_the_metadata_says_what_it_needs_and_under_which_licences(built: Built) -> None:
    said = built.metadata
    assert (said["Name"], said["Version"]) == ("nodenova", nova.__version__)
    assert said["License-Expression"] == "MIT"
    licences = [name for name in built.names if "/licenses/" in name]
    assert {Path(name).name for name in licences} == {"LICENSE", "WORDNET-LICENSE"}
    pythons = re.findall(r"Python :: (3\.\d+)", "\n".join(said.get_all("Classifier", [])))
    assert pythons == ["3.11", "3.12", "3.13", "3.14"]
    assert said["Requires-Python"] == ">=3.11"
    needed = [line for line in said.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert {"numpy", "torch", "typer"} <= {re.split(r"\W", line)[0] for line in needed}
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == nova.__version__


def test_every_extra_is_explained_where_installing_is(built: Built) -> None:
    page = (ROOT / "docs/install.md").read_text(encoding="utf-8")
    explained = re.findall(r"^\| `(\w+)` \| \S", page, re.MULTILINE)
    assert sorted(explained) == sorted(built.metadata.get_all("Provides-Extra", []))
    assert set(explained) >= EXTRAS


def test_the_pinned_set_has_allowed_licenses() -> None:
    """Every pinned package that is installed, and all that users get."""
    users = set(sbom.closure(sbom.extras_for_users()))
    assert sbom.problems(users | sbom.pinned().keys(), users) == []
    assert {"torch", "numpy", "narwhals", "duckdb"} <= users
    assert not users & sbom.TOLERATED.keys()
    assert users - {"nodenova"} <= sbom.pinned().keys()


def test_a_license_that_is_not_allowed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sbom, "ALLOWED", sbom.ALLOWED - {"BSD-3-Clause"})
    (problem,) = sbom.problems({"scipy"}, {"scipy"})
    assert problem == "scipy: BSD-3-Clause is not among the allowed licenses"
    monkeypatch.setattr(sbom, "license_of", lambda found: "")
    assert "name no license" in sbom.problems({"scipy"}, {"scipy"})[0]


def test_the_bill_of_materials_names_every_package_once(tmp_path: Path) -> None:
    path = tmp_path / "bill.json"
    assert sbom.main(["--out", str(path)]) == 0
    bill = json.loads(path.read_text(encoding="utf-8"))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", bill["serialNumber"])
    root = bill["metadata"]["component"]
    assert (root["name"], root["version"]) == ("nodenova", nova.__version__)
    references = [part["bom-ref"] for part in (root, *bill["components"])]
    assert len(set(references)) == len(references)
    assert {link["ref"] for link in bill["dependencies"]} == set(references)
    assert all(set(link["dependsOn"]) <= set(references) for link in bill["dependencies"])
    assert all(part["licenses"] for part in bill["components"])
    again = tmp_path / "again.json"
    sbom.main(["--out", str(again)])
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.slow
def test_wheel_and_sdist_are_the_same_bytes_wherever_they_are_built(tmp_path: Path) -> None:
    """Of this checkout, and of the sdist unpacked elsewhere with other dates and permissions."""

    def build(root: Path, name: str) -> dict[str, str]:
        out = tmp_path / name
        run(root, sys.executable, "-m", "build", "--no-isolation", "--outdir", out, root)
        return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in out.iterdir()}

    here = build(ROOT, "here")
    assert len(here) == 2
    (sdist,) = (tmp_path / "here").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (copy,) = (tmp_path / "unpacked").iterdir()
    for path in copy.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
        path.chmod(0o600 | path.stat().st_mode & 0o100)
    assert build(copy, "there") == here


@pytest.mark.slow
def test_the_installed_wheel_answers_and_brings_its_data(built: Built, tmp_path: Path) -> None:
    """Its dependencies are those of this environment; the real thing is the slow test below."""
    programs = environment_in(tmp_path, "--without-pip")
    pip = [sys.executable, "-m", "pip", "--python", programs / "python"]
    run(tmp_path, *pip, "install", "--quiet", "--no-deps", "--no-index", built.wheel)
    ask = "import site; print(site.getsitepackages()[0])"
    packages = Path(run(tmp_path, programs / "python", "-c", ask).strip())
    # Folders that a .pth names are searched last, and their own .pth, an editable one, not at all.
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()), encoding="utf-8")
    assert run(tmp_path, programs / "nodenova", "--version") == f"nodenova {nova.__version__}\n"
    code = (
        "import nodenova as nova; print(nova.__file__);"
        "print(nova.load_dataset('wordnet').graph.num_nodes)"
    )
    file, nodes = run(tmp_path, programs / "python", "-c", code).splitlines()
    assert Path(file).parent == packages / "nodenova"
    assert int(nodes) == 9997


@pytest.mark.slow
def test_a_fresh_environment_installs_the_wheel_and_discovers(tmp_path: Path) -> None:
    """As a stranger would: from the sdist to a wheel, to a new environment, to a page."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, ROOT]
    run(ROOT, *command)
    (wheel,), (sdist,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "LICENSE",
        "Makefile",
        "constraints.txt",
        "tests/test_release.py",
        "mkdocs.yml",
    } <= inside
    assert not [name for name in inside if ".venv" in name or "__pycache__" in name]
    programs = environment_in(tmp_path)
    pip = [programs / "python", "-m", "pip", "install", "--quiet"]
    pinned = ["--disable-pip-version-check", "--constraint", ROOT / "constraints.txt"]
    run(tmp_path, *pip, *pinned, "torch")
    run(tmp_path, *pip, *pinned, wheel)
    assert run(tmp_path, programs / "nodenova", "--version") == f"nodenova {nova.__version__}\n"
    code = "import nodenova as nova; print(nova.fit.__name__, nova.__file__)"
    name, file = run(tmp_path, programs / "python", "-c", code).split()
    assert name == "fit"
    assert Path(file).is_relative_to(tmp_path)
    said = run(tmp_path, programs / "nodenova", "demo", "--out", "demo")
    assert "The true new kinds are" in said
    assert (tmp_path / "demo/report.html").stat().st_size > 50_000
    found = run(tmp_path, programs / "nodenova", "classes", "demo")
    assert found.count("discovered") >= 3
