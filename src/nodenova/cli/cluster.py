"""The option --ray: runs, or the rows of one graph, on several machines."""

from __future__ import annotations

from contextlib import ExitStack
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodenova.errors import SettingError

if TYPE_CHECKING:
    from nodenova.graph import Graph

# The connection and the split graph, which end with the command.
_STACK: ContextVar[ExitStack] = ContextVar("ray")


def _check_ray(context: typer.Context, address: str | None) -> str | None:
    """Check --ray before anything is computed."""
    if address is not None:
        from nodenova.cluster.session import check_address, ray_module

        check_address(address)
        ray_module()
        _STACK.set(context.with_resource(ExitStack()))
    return address


RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="auto|HOST:PORT",
        callback=_check_ray,
        help="Use a Ray cluster: auto starts one on this machine, HOST:PORT is a cluster's head.",
    ),
]


def use_cluster(address: str | None, graph: Graph, folder: Path | None, encoder: str) -> None:
    """Have the cluster of --ray, if any, compute what prism needs until the command ends."""
    if address is None:
        return
    from nodenova.cluster.session import connect
    from nodenova.cluster.split import split_graph

    if encoder != "prism":
        raise SettingError(f"--ray works with prism only; {encoder} is trained on one machine")
    if folder is None or not graph.is_mapped:
        raise SettingError(
            "--ray needs a graph folder: write one with nodenova prepare, name it with --graph"
        )
    _STACK.get().enter_context(connect(address, folder=folder))
    _STACK.get().enter_context(split_graph(graph, folder))
