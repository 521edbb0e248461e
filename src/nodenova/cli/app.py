"""What all commands share: the app, its two consoles, common options and their parsing."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperGroup

from nodenova import __version__
from nodenova.encoders import ENCODER_NAMES
from nodenova.errors import SettingError, StorageError, one_of
from nodenova.methods.registry import METHODS
from nodenova.supervised import LABELLED

# torch takes seconds to import: commands import what they need, so that --help is quick.
if TYPE_CHECKING:
    from nodenova.data.labels import LabelledGraph
    from nodenova.graph import Graph


class Program(TyperGroup):
    """The commands. Ctrl-C ends any of them by one sentence, wherever it is."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; `run` and `bench`, which can be resumed, answer Ctrl-C themselves."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            fail("stopped; nothing was written", 130)


app = typer.Typer(
    cls=Program,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="Discover new classes of nodes on a graph.\n\n"
    "Start with [bold]nodenova demo[/]; then "
    "[bold]nodenova discover --nodes nodes.csv --edges edges.csv[/].",
)
OWN = "A graph of your own"
RESEARCH = "Research: methods under one protocol"
# Groups of options in the help of a command.
INPUT, FINDING, GOING_ON, OUTPUT = "Input", "Discovery", "Continuing a run", "Output"
out = Console()
err = Console(stderr=True)
_started = time.monotonic()


def _print_version(is_set: bool) -> None:
    if is_set:
        out.print(f"nodenova {__version__}", highlight=False)
        raise typer.Exit


def _import_encoders(names: list[str] | None) -> list[str] | None:
    """Make the encoders of --import known to the command."""
    for name in names or []:
        from nodenova.encoders.registry import register_encoder

        register_encoder(name)
    return names


@app.callback()
def _every_command(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version and exit."
        ),
    ] = False,
    imports: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="mine.py:Net",
            callback=_import_encoders,
            help="Encoder of your own that a saved model needs; its file is run. Repeatable.",
        ),
    ] = None,
) -> None:
    """Options before the name of a command."""


DataRoot = Annotated[
    Path | None,
    typer.Option(
        help="Folder with raw dataset files (default: environment variable NODENOVA_DATA)."
    ),
]


def _use_threads(context: typer.Context, threads: str) -> str:
    """Set the number of threads of the command."""
    if threads != "auto":
        if not threads.isdecimal() or int(threads) < 1:
            raise SettingError(
                f"--threads must be auto or a positive whole number, not {threads!r}"
            )
        from nodenova.nn.seeding import fixed_threads

        context.with_resource(fixed_threads(int(threads)))
    return threads


Threads = Annotated[
    str,
    typer.Option(
        callback=_use_threads,
        help="Number of cores, or auto for all. It does not change the result.",
    ),
]
Device = Annotated[str, typer.Option(help="Where encoders are trained: auto, cpu or cuda.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
RunPath = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", help="Run folder written by `nodenova run`, `discover` or `demo`."
    ),
]


def load_named(
    dataset: str | None, graph: Path | None, data_root: Path | None, split: int
) -> tuple[LabelledGraph, int | None]:
    """Load a dataset or a graph file; with the default number of old classes."""
    if (dataset is None) == (graph is None):
        raise SettingError("give either --dataset NAME or --graph FILE")
    from nodenova.io.dataset_table import DATASETS
    from nodenova.io.datasets import load_dataset
    from nodenova.io.load import load_graph

    if graph is not None:
        return load_graph(graph), None
    assert dataset is not None
    labelled = load_dataset(dataset, data_root, split=split)
    half = (labelled.num_classes + 1) // 2
    return labelled, DATASETS[dataset].num_old if dataset in DATASETS else half


def old_classes(labelled: LabelledGraph, old: str | None, num_old: int | None) -> tuple[int, ...]:
    """Ids of the old classes, by --old or --num-old."""
    if old is not None and num_old is not None:
        raise SettingError("give either --old or --num-old, not both")
    if old is not None:
        return tuple(whole_numbers("--old", old))
    if num_old is None:
        raise SettingError(
            f"{labelled.name}: choose the old classes with --num-old N or --old 0,2,5"
        )
    if not 1 <= num_old < labelled.num_classes:
        raise SettingError(
            f"--num-old is {num_old}, but {labelled.name} has {labelled.num_classes} classes: "
            "at least one must be old and at least one new"
        )
    return tuple(range(num_old))


def check_method_name(name: str) -> None:
    """Raise unless a method is registered or in a file, before PyTorch is imported."""
    if ".py" not in name and name not in METHODS | LABELLED:
        raise one_of("method", name, METHODS | LABELLED)


def check_method(name: str, settings: Mapping[str, str], encoder: str | None = None) -> None:
    """Validate the names of a method, its settings and an encoder, before PyTorch is imported."""
    check_method_name(name)
    if encoder is not None and ".py" not in encoder and encoder not in ENCODER_NAMES:
        raise one_of("encoder", encoder, ENCODER_NAMES)
    if ".py" not in name:
        (METHODS | LABELLED).check_settings(name, settings)


def settings_of(pairs: Sequence[str], option: str = "--set") -> tuple[tuple[str, str], ...]:
    """Parse name=value pairs.

    Examples:
        >>> settings_of(["epochs=300", "eta=0.5"])
        (('epochs', '300'), ('eta', '0.5'))
    """
    for pair in pairs:
        if "=" not in pair:
            raise SettingError(f"{option} takes name=value, not {pair!r}")
    return tuple((name, value) for name, _, value in (pair.partition("=") for pair in pairs))


def seeds_of(text: str) -> list[int]:
    """Parse --seeds: a number of seeds, or a list.

    Examples:
        >>> seeds_of("3"), seeds_of("7,4")
        ([0, 1, 2], [4, 7])
    """
    numbers = whole_numbers("--seeds", text)
    seeds = numbers if "," in text else list(range(numbers[0]))
    if not seeds:
        raise SettingError("--seeds must be at least 1")
    return sorted(set(seeds))


def whole_numbers(option: str, text: str) -> list[int]:
    """Parse whole numbers separated by commas."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() for part in parts):
        raise SettingError(f"{option} takes whole numbers like 3 or 4,7, not {text!r}")
    return [int(part) for part in parts]


def listed_names(text: str) -> list[str]:
    """Parse names separated by commas.

    Examples:
        >>> listed_names("year, venue")
        ['year', 'venue']
    """
    return [name.strip() for name in text.split(",") if name.strip()]


def check_saved(path: Path) -> None:
    """Raise StorageError unless a folder has a run or a saved model."""
    if not any((path / name).is_file() for name in ("run.json", "model.json")):
        what = "holds neither a run nor a saved model" if path.is_dir() else "does not exist"
        raise StorageError(f"{path} {what}; nothing was written")


def print_notes(notes: Iterable[str]) -> None:
    """Print notes on repairs and assumptions to standard error, one per line."""
    for note in notes:
        err.print(f"[dim]note: {escape(note)}[/]", highlight=False, soft_wrap=True)


def log_line(what: str) -> None:
    """Print the seconds since the start and the current phase, where no bar can be drawn."""
    since = time.monotonic() - _started
    err.print(f"{since:6.1f} s  {what}", markup=False, highlight=False, soft_wrap=True)


@contextmanager
def loading(quiet: bool, what: str = "loading PyTorch") -> Iterator[None]:
    """Show a status around the imports of a command, which take seconds without PyTorch loaded."""
    if quiet or "torch" in sys.modules:
        yield
    elif err.is_terminal:
        with err.status(f"[dim]{what}[/]"):
            yield
    else:
        log_line(what)
        yield


def program() -> str:
    """The command to type: nodenova, or its path where it is not on PATH.

    An environment that `uvx` or `pipx run` keeps in a cache is reached by them alone.
    """
    cache = Path(sys.prefix).parent
    if "UV" in os.environ and cache.name == "archive-v0":
        return "uvx nodenova"
    if cache.name == ".cache" and "pipx" in cache.parent.name:
        return "pipx run nodenova"
    name = Path(sys.argv[0])
    is_script = name.stem == "nodenova" and shutil.which("nodenova") is None
    return str(name) if is_script else "nodenova"


def fail(message: str, code: int) -> NoReturn:
    """Print an error to standard error and exit with a code."""
    err.print(f"[red]error:[/] {escape(message)}", soft_wrap=True, highlight=False)
    sys.exit(code)


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
        help="Use a Ray cluster: auto starts one on this machine (on loopback only), HOST:PORT is a "
        "cluster's head, which runs any code that it is sent.",
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
