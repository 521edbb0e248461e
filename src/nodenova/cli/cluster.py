"""--ray: runs, or the rows of a graph, on several machines."""

from __future__ import annotations

from contextlib import ExitStack
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodenova.errors import SettingError

if TYPE_CHECKING:
    from nodenova.graph import Graph


_STACK: ContextVar[ExitStack] = ContextVar("what ends with the command")


def _checked(context: typer.Context, address: str | None) -> str | None:
    """Say early what is wrong."""
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
        callback=_checked,
        help="On a Ray cluster: auto starts one on this machine, HOST:PORT is the head of another.",
    ),
]


def use_cluster(address: str | None, graph: Graph, folder: Path | None, encoder: str) -> None:
    """Have a cluster compute what prism asks of a graph, until the command ends.

    Args:
        address: As --ray; nothing is done without it.
        graph: Read from
        folder: a graph folder.
        encoder: The name of the encoder.

    Raises:
        SettingError: It is no graph folder, the encoder is another one, or the cluster cannot be
            used.
    """
    if address is None:
        return
    from nodenova.cluster.session import connect
    from nodenova.cluster.split import split_graph

    if encoder != "prism":
        raise SettingError(f"--ray is for prism; {encoder} is trained on one machine")
    if folder is None or not graph.is_mapped:
        raise SettingError(
            "--ray needs a graph folder: nodenova prepare makes it, --graph names it"
        )
    _STACK.get().enter_context(connect(address, folder=folder))
    _STACK.get().enter_context(split_graph(graph, folder))
