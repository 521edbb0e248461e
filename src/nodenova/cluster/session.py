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
from nodenova.errors import SettingError, first_line

MAX_ANSWER = 60.0  # seconds in which a machine of the cluster answers
MAX_CONNECT = 5.0  # seconds in which the head of a cluster answers
ADDRESS = re.compile(r"(?P<host>[\w.-]+|\[[0-9a-fA-F:.]+\]):(?P<port>\d{1,5})")
LOOPBACK = {"127.0.0.1", "::1"}
STARTED_BY_US = {"include_dashboard": False}
QUIET = {"log_to_driver": False, "logging_level": "ERROR"}


def ray_module() -> Any:
    """Import Ray, an optional extra."""
    # A cluster that is started here sends no usage statistics.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise SettingError("--ray needs Ray: pip install 'nodenova[ray]'") from None
    return ray


def check_address(address: str) -> None:
    """Raise unless --ray is auto or HOST:PORT."""
    if address != "auto" and not ADDRESS.fullmatch(address):
        raise SettingError(
            "--ray is auto (a Ray on this machine) or the HOST:PORT of a cluster's head, "
            f"not {address!r}"
        )


@contextmanager
def connect(
    address: str, num_cpus: int | None = None, folder: Path | None = None
) -> Iterator[None]:
    """Connect to a cluster within this block; an existing connection is used, and stays.

    "auto" starts a Ray on this machine, with `num_cpus` tasks at a time, that ends with the block
    and listens on loopback only.
    Each machine of another cluster must have this version of nodenova, and the graph folder.
    """
    check_address(address)
    ray = ray_module()
    if ray.is_initialized():
        yield
        return
    if address == "auto":
        _start_here(ray, num_cpus)
    else:
        _join(ray, address)
    try:
        if address != "auto":
            _check_machines(ray, folder)
        yield
    finally:
        ray.shutdown()


def capacity() -> int:
    """Number of tasks that the cluster can run at a time now."""
    return max(int(ray_module().cluster_resources().get("CPU", 1)), 1)


def remote(function: Callable[..., Any], **options: Any) -> Any:
    """Wrap a function for the cluster; its `.remote(...)` returns a reference at once."""
    return ray_module().remote(**{"num_cpus": 1, **options})(function)


def _start_here(ray: Any, num_cpus: int | None) -> None:
    """Start a Ray that listens on loopback only; stop it and raise if it does not."""
    from ray._private import ray_constants

    # Ray replaces a loopback address by the outer one, except where it expects no cluster (macOS
    # and Windows). The umask makes its local sockets, logs and token files private.
    expected, mask = getattr(ray_constants, "ENABLE_RAY_CLUSTER", True), os.umask(0o077)
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        ray.init(address="local", num_cpus=num_cpus, **STARTED_BY_US, **QUIET)
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = expected
        os.umask(mask)
    elsewhere = {node["NodeManagerAddress"] for node in ray.nodes()} - LOOPBACK
    if elsewhere:
        ray.shutdown()
        raise SettingError(
            f"--ray auto: Ray {ray.__version__} listens on {min(elsewhere)}, not on loopback only; "
            "leave --ray out, or install another version of Ray"
        )


def _join(ray: Any, address: str) -> None:
    parts = ADDRESS.fullmatch(address)
    assert parts is not None
    try:
        # Ray itself would try for minutes.
        end = (parts["host"].strip("[]"), int(parts["port"]))
        socket.create_connection(end, timeout=MAX_CONNECT).close()
    except (OSError, OverflowError) as error:
        raise SettingError(f"--ray {address}: no answer from this address ({error})") from None
    try:
        ray.init(address=address, **QUIET)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        ray.shutdown()
        raise SettingError(
            f"--ray {address}: cannot be joined from this machine; "
            f"run `ray start --address={address}` on it first ({first_line(error)})"
        ) from None


def _check_machines(ray: Any, folder: Path | None) -> None:
    """Raise unless each machine that runs tasks has this version and the folder."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    index = None if folder is None else folder.absolute() / "graph.json"
    ray.cloudpickle.register_pickle_by_value(probe)
    try:
        look = ray.remote(num_cpus=0, max_retries=0)(probe.look)
        answers = []
        for node in ray.nodes():
            if node["Alive"] and node["Resources"].get("CPU"):
                strategy = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                machine = f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
                task = look.options(scheduling_strategy=strategy)
                answers.append((machine, task.remote(None if index is None else str(index))))
    finally:
        ray.cloudpickle.unregister_pickle_by_value(probe)
    for machine, answer in answers:
        try:
            version, content = ray.get(answer, timeout=MAX_ANSWER)
        except ray.exceptions.GetTimeoutError:
            what = f"{machine} has not answered in {MAX_ANSWER:g} seconds"
            raise SettingError(f"--ray: {what}") from None
        except ray.exceptions.RayError:  # lost meanwhile: no task will run there
            continue
        if version != __version__:
            has = "has no nodenova" if version is None else f"has nodenova {version}"
            raise SettingError(f"--ray: {machine} {has}; install nodenova[ray] {__version__} there")
        if index is not None and content != index.read_bytes():
            raise SettingError(
                f"--ray: {machine} does not have {folder}; every machine must have the same "
                "graph folder at the same path"
            )
