"""Joining a Ray cluster, or starting one on this machine."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nodenova import __version__
from nodenova.cluster import probe
from nodenova.errors import SettingError

MAX_ANSWER = 60.0  # seconds in which a machine of the cluster says what it has
MAX_CONNECT = 5.0  # seconds in which the head of a cluster answers
ADDRESS = re.compile(r"(?P<host>[\w.-]+|\[[0-9a-fA-F:.]+\]):(?P<port>\d{1,5})")
STARTED_BY_US = {"include_dashboard": False}
QUIET = {"log_to_driver": False, "logging_level": "ERROR"}


def ray_module() -> Any:
    """Ray, which is an extra.

    Raises:
        SettingError: It is not installed.
    """
    # Nothing is sent home by a cluster that is started here; those of others are as they are.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise SettingError("--ray needs Ray: pip install 'nodenova[ray]'") from None
    return ray


def check_address(address: str) -> None:
    """Raise unless --ray is auto or HOST:PORT.

    Raises:
        SettingError: It is neither.

    Examples:
        >>> check_address("auto")
        >>> try:
        ...     check_address("here")
        ... except SettingError as error:
        ...     print(error)
        --ray is auto (a Ray on this machine) or the HOST:PORT of a cluster's head, not 'here'
    """
    if address != "auto" and not ADDRESS.fullmatch(address):
        raise SettingError(
            "--ray is auto (a Ray on this machine) or the HOST:PORT of a cluster's head, "
            f"not {address!r}"
        )


@contextmanager
def connect(
    address: str, num_cpus: int | None = None, folder: Path | None = None
) -> Iterator[None]:
    """Within this block tasks run on a cluster.

    Where this process is connected already, that connection is used, and stays.

    Args:
        address: "auto" for a Ray on this machine, which ends with the block; or HOST:PORT of a
            head.
        num_cpus: Of the one on this machine, how many tasks at a time; as many as cores unless
            given.
        folder: A graph folder that every machine of the cluster must have at this path.

    Raises:
        SettingError: Ray is not installed, nobody answers at the address, or a machine of the
            cluster lacks nodenova, has another version of it, or lacks the folder.
    """
    check_address(address)
    ray = ray_module()
    if ray.is_initialized():
        yield
        return
    if address == "auto":
        ray.init(address="local", num_cpus=num_cpus, **STARTED_BY_US, **QUIET)
    else:
        _join(ray, address)
    try:
        if address != "auto":
            _check_machines(ray, folder)
        yield
    finally:
        ray.shutdown()


def capacity() -> int:
    """How many tasks run at a time on the cluster as it is now."""
    return max(int(ray_module().cluster_resources().get("CPU", 1)), 1)


def remote(function: Callable[..., Any], **options: Any) -> Any:
    """A function as one that runs on the cluster: `.remote(...)` gives a reference at once."""
    return ray_module().remote(**{"num_cpus": 1, **options})(function)


def _join(ray: Any, address: str) -> None:
    parts = ADDRESS.fullmatch(address)
    assert parts is not None
    try:
        # Ray itself tries for minutes.
        end = (parts["host"].strip("[]"), int(parts["port"]))
        socket.create_connection(end, timeout=MAX_CONNECT).close()
    except (OSError, OverflowError) as error:
        raise SettingError(f"--ray {address}: nobody answers there ({error})") from None
    try:
        ray.init(address=address, **QUIET)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        ray.shutdown()
        first = str(error).strip().partition("\n")[0]
        raise SettingError(
            f"--ray {address}: cannot be joined from this machine, on which "
            f"`ray start --address={address}` must have been run ({first})"
        ) from None


def _check_machines(ray: Any, folder: Path | None) -> None:
    """Every machine with a processor for us has what its tasks will ask for."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    index = None if folder is None else folder.absolute() / "graph.json"
    ray.cloudpickle.register_pickle_by_value(probe)
    try:
        look = ray.remote(num_cpus=0, max_retries=0)(probe.look)
        asked = []
        for node in ray.nodes():
            if node["Alive"] and node["Resources"].get("CPU"):
                there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                place = f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
                task = look.options(scheduling_strategy=there)
                asked.append((place, task.remote(None if index is None else str(index))))
    finally:
        ray.cloudpickle.unregister_pickle_by_value(probe)
    for place, answer in asked:
        try:
            version, content = ray.get(answer, timeout=MAX_ANSWER)
        except ray.exceptions.GetTimeoutError:
            raise SettingError(
                f"--ray: {place} has not answered in {MAX_ANSWER:g} seconds"
            ) from None
        except ray.exceptions.RayError:  # lost meanwhile, and nothing will be asked of it
            continue
        if version != __version__:
            has = "has no nodenova" if version is None else f"has nodenova {version}"
            raise SettingError(f"--ray: {place} {has}; install nodenova[ray] {__version__} there")
        if index is not None and content != index.read_bytes():
            raise SettingError(
                f"--ray: {place} does not have {folder}; every machine must have the same "
                "graph folder at the same path"
            )
