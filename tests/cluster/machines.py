"""A cluster of one or two machines on loopback, with one processor each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ray.cluster_utils import Cluster

STORE = 100 * 2**20  # bytes of memory that a machine keeps objects in


class Machines:
    """The machines; the first is the head, on which the tests run."""

    def __init__(self) -> None:
        self.cluster = Cluster(
            initialize_head=True,
            head_node_args={
                "num_cpus": 1,
                "object_store_memory": STORE,
                "include_dashboard": False,
            },
        )
        self.others: list[Any] = []

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def add(self, **options: Any) -> Any:
        """One machine more."""
        machine = self.cluster.add_node(num_cpus=1, object_store_memory=STORE, **options)
        self.others.append(machine)
        return machine

    def lose(self, machine: Any) -> None:
        """A machine goes, at once."""
        self.others.remove(machine)
        self.cluster.remove_node(machine, allow_graceful=False)


@contextmanager
def a_cluster() -> Iterator[Machines]:
    """The head alone."""
    machines = Machines()
    try:
        yield machines
    finally:
        machines.cluster.shutdown()


@contextmanager
def two_machines() -> Iterator[Machines]:
    with a_cluster() as machines:
        machines.add()
        yield machines
