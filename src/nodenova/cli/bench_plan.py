"""Plan files of `nodenova bench`: one TOML file with the keys of the command's options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodenova.errors import SettingError, one_of
from nodenova.files.documents import (
    Schema,
    boolean,
    check,
    either,
    list_of,
    map_of,
    number,
    read_toml,
    record,
    text,
    whole,
)

NAMES = either(text, list_of(text, 1))
SETTINGS = either(list_of(text), map_of(either(text, boolean, number())))
# What a table runs, by the name of the option.
TABLE_KEYS: Mapping[str, Schema] = {
    "table": text,
    "datasets": NAMES,
    "encoders": NAMES,
    "methods": NAMES,
    "set": SETTINGS,
    "seeds": either(text, whole(1), list_of(whole(0), 1)),
    "num-old": whole(1),
    "hidden": either(text, whole(1)),
    "schedule": text,
    "setting": text,
    "fit-set": SETTINGS,
    "fit-epochs": whole(1),
}
# How all of them are run.
SHARED_KEYS: Mapping[str, Schema] = {
    "device": text, "jobs": whole(1), "data-root": text, "split": whole(0), "out": text, "others": NAMES,
}  # fmt: skip


@dataclass(frozen=True)
class BenchPlan:
    """A plan: values by option, as the command line parses them.

    Attributes:
        tables: Options of each table; those of the whole file are in every one.
        shared: Options of the whole command: device, jobs, data-root, split, out, others.
    """

    tables: tuple[Mapping[str, Any], ...]
    shared: Mapping[str, Any]


def read_plan(path: Path, command_line: Mapping[str, Any]) -> BenchPlan:
    """Read a plan; `command_line` are the options on the command line, which may add to it.

    Raises:
        SettingError: If the file, a key or a value is wrong, or an option contradicts the plan.
    """
    document = read_toml(path, SettingError)
    sections = document.pop("tables", None)
    _check_keys(document, {**TABLE_KEYS, **SHARED_KEYS, "tables": list_of(record({}))}, str(path))
    if sections is not None:
        check(sections, list_of(record({}), 1), f"{path}: tables", SettingError, verdict="")
    for number_of, section in enumerate(sections or [], start=1):
        _check_keys(section, TABLE_KEYS, f"{path}: tables {number_of}")
    top = {key: _option(key, value) for key, value in document.items()}
    shared = {key: top.pop(key) for key in SHARED_KEYS if key in top}
    own = [{key: _option(key, value) for key, value in each.items()} for each in sections or [{}]]
    tables = [{**top, **each} for each in own]
    for key, value in command_line.items():
        for stated in (shared, *tables):
            if key in stated and _words(stated[key]) != _words(value):
                option = "TABLE" if key == "table" else f"--{key}"
                raise SettingError(
                    f"{option} {_words(value)} contradicts {path}, where {key} is "
                    f"{_words(stated[key])}; change one of the two"
                )
    for key, value in command_line.items():
        for stated in [shared] if key in SHARED_KEYS else tables:
            stated[key] = value
    for each in tables:
        if "table" not in each:
            raise SettingError(f'{path}: table is missing, such as table = "comparison"')
    return BenchPlan(tuple(tables), shared)


def _check_keys(values: Mapping[str, Any], known: Mapping[str, Schema], where: str) -> None:
    """Raise for an unknown key or a value of another type; the message names the key."""
    for key, value in values.items():
        if key not in known:
            raise one_of(f"key in {where}:", key, known)
        check({key: value}, record({key: known[key]}), where, SettingError, verdict="")


def _option(key: str, value: Any) -> Any:
    """Return a value of the file as the command line parses the option."""
    if key in ("set", "fit-set"):
        if isinstance(value, list):
            return value
        return [f"{name}={_text(each)}" for name, each in value.items()]
    if key in ("num-old", "fit-epochs", "jobs", "split"):
        return value
    if key == "others":
        return [Path(name) for name in ([value] if isinstance(value, str) else value)]
    if isinstance(value, list):  # of one seed: not the number of seeds
        return ",".join(map(str, value)) + "," * (key == "seeds")
    return str(value)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _words(value: Any) -> str:
    """Return a value as it is compared and shown."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, sorted(value)))
    words = str(value)
    return words.rstrip(",") if words.count(",") > 1 else words  # "4," is seed 4, "4" is four seeds
