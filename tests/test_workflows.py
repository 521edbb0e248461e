"""The workflow files: when they run, what they may do, and that their commands exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / ".github"
WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in FOLDER.glob("workflows/*.yml")
}
ON = True  # what YAML 1.1 makes of the key `on`
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def steps() -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{name}/{job}", step)
        for name, workflow in WORKFLOWS.items()
        for job, content in workflow["jobs"].items()
        for step in content["steps"]
    ]


def test_tests_run_on_changes_and_publishing_runs_on_tags_alone() -> None:
    assert WORKFLOWS.keys() == {"tests", "publish"}
    assert WORKFLOWS["tests"][ON] == {"push": {"branches": ["main"]}, "pull_request": None}
    assert WORKFLOWS["publish"][ON].keys() == {"push"}
    assert WORKFLOWS["publish"][ON]["push"].keys() == {"tags"}


def test_tests_run_on_every_python_and_on_three_systems_on_the_oldest_and_the_newest() -> None:
    matrix = WORKFLOWS["tests"]["jobs"]["test"]["strategy"]["matrix"]
    assert {name.split("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
    declared = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert matrix["python"] == [declared[0], declared[-1]]
    further = [job["python"] for job in matrix["include"]]
    assert sorted([*matrix["python"], *further]) == declared
    assert {job["os"] for job in matrix["include"]} <= set(matrix["os"])
    assert PROJECT["requires-python"] == f">={declared[0]}"


def test_a_release_needs_a_dated_section_of_the_changelog() -> None:
    """The expression of the workflow finds such a heading, and no other."""
    mine = [step for where, step in steps() if where == "publish/build"]
    commands = [step.get("run", "") for step in mine]
    (check,) = [command for command in commands if "CHANGELOG.md" in command]
    pattern = check.split('"')[1].replace("${GITHUB_REF_NAME#v}", "1.0.0rc1")
    assert re.search(pattern, "## [1.0.0rc1] - 2026-12-01")
    assert not re.search(pattern, "## [Unreleased]")
    assert not re.search(pattern, "## [1.0.0] - 2026-12-01")


def test_only_the_job_that_publishes_may_more_than_read() -> None:
    assert WORKFLOWS["tests"]["permissions"] == {"contents": "read"}
    assert WORKFLOWS["publish"]["permissions"] == {}
    granted = {
        (name, job): content["permissions"]
        for name, workflow in WORKFLOWS.items()
        for job, content in workflow["jobs"].items()
        if "permissions" in content
    }
    assert granted == {
        ("publish", "build"): {"contents": "read"},
        ("publish", "publish"): {"id-token": "write"},
    }
    publish = WORKFLOWS["publish"]["jobs"]["publish"]
    assert publish["needs"] == "build"
    assert publish["environment"]
    assert publish["steps"][-1]["with"] == {"attestations": True}  # and no password
    assert "secrets." not in "".join(path.read_text() for path in FOLDER.glob("workflows/*.yml"))


def test_every_action_is_pinned_to_a_commit_and_leaves_no_credentials() -> None:
    used = [(where, step) for where, step in steps() if "uses" in step]
    assert len(used) > 5
    unpinned = [step["uses"] for _, step in used if not re.search(r"@[0-9a-f]{40}$", step["uses"])]
    assert unpinned == []
    versions = {step["uses"].split("@")[0]: step["uses"] for _, step in used}
    assert {step["uses"] for _, step in used} == set(versions.values())  # one version of each
    checkouts = [step for _, step in used if step["uses"].startswith("actions/checkout@")]
    assert all(step["with"] == {"persist-credentials": False} for step in checkouts)


def test_the_targets_and_files_that_commands_name_exist() -> None:
    targets = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = [(where, step["run"]) for where, step in steps() if "run" in step]
    made = {
        target
        for _, command in commands
        for line in re.findall(r"^make (.+)$", command, re.MULTILINE)
        for target in line.split()
    }
    assert made == {"check", "test", "docs", "dist"}
    assert made <= targets
    for where, command in commands:
        for name in re.findall(r"\b(?:tests|tools)/[\w./]+|\bconstraints\.txt", command):
            assert (ROOT / name).is_file(), f"{where}: {command}"


def test_where_there_is_no_make_the_commands_behind_it_are_run() -> None:
    makefile = (ROOT / "Makefile").read_text()
    commands = [step["run"] for where, step in steps() if where == "tests/test" and "run" in step]
    assert not [command for command in commands if command.startswith("make")]
    for command in ("--constraint constraints.txt", "--editable '.[dev]'", "-m pytest -n "):
        assert [run for run in commands if command in run]
        assert command in makefile


@pytest.mark.parametrize("name", ["wrong", "wish"])
def test_an_issue_asks_for_few_things(name: str) -> None:
    form = yaml.safe_load((FOLDER / f"ISSUE_TEMPLATE/{name}.yml").read_text(encoding="utf-8"))
    fields = [part for part in form["body"] if part["type"] == "textarea"]
    assert form["name"]
    assert form["description"]
    assert 1 <= len(fields) <= 3
    assert len({field["id"] for field in fields}) == len(fields)
    assert fields[0]["validations"] == {"required": True}
