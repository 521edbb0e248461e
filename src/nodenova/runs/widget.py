"""The map and the review of a run as a notebook widget; needs the extra `notebook`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from os import PathLike
from typing import Any

from nodenova.errors import SettingError
from nodenova.review.page import review_page
from nodenova.runs.folder import RunFolder, open_run, stored_layout
from nodenova.runs.run import DiscoveryRun
from nodenova.settings import check_arguments


def review_widget(run: Any, height: int = 700) -> Any:
    """Show the map and the cards of a run in a notebook, to name, merge, split or reject classes.

    `widget.decisions` has the decisions so far, `widget.review` the whole document. Nothing is
    written until `run.apply(widget.decisions)`.

    Args:
        run: Run that `nova.open_run` opened, the path of a run, a fitted `NodeDiscoverer`, or its
            `run_`.
        height: Height of the widget in pixels.

    Returns:
        An `anywidget.AnyWidget`, which Jupyter, VS Code, Colab and marimo show.

    Raises:
        SettingError: If anywidget is not installed, or `run` is no run.

    Examples:
        >>> import nodenova as nova
        >>> data = nova.synthetic(nodes=60, classes=3, words=40)
        >>> y = [c if c < 2 else -1 for c in data.y.tolist()]
        >>> nova.review_widget(nova.NodeDiscoverer(num_new=1).fit(data.graph, y)).decisions
        []
    """
    check_arguments(review_widget, locals())
    kind = _widget_class()
    if isinstance(run, (str, PathLike)):
        run = open_run(run)
    if isinstance(run, RunFolder):
        page = run.run.page_data(stored_layout(run.path, run.path))
    else:
        run = getattr(run, "run_", run)
        if not isinstance(run, DiscoveryRun):
            raise SettingError(
                "review_widget takes what nova.open_run returned, a path or a fitted "
                f"NodeDiscoverer, not {type(run).__name__}"
            )
        page = run.page_data()
    return kind(page=review_page(page, in_notebook=True), height=height)


@cache
def _widget_class() -> Any:
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise SettingError("a widget needs anywidget: pip install 'nodenova[notebook]'") from None

    class ReviewWidget(anywidget.AnyWidget):  # type: ignore[misc]
        """A review page in a frame."""

        _esm = files("nodenova.runs").joinpath("assets/frame.js").read_text(encoding="utf-8")
        page = traitlets.Unicode().tag(sync=True)
        height = traitlets.Int(700).tag(sync=True)
        review = traitlets.Dict().tag(sync=True)

        @property
        def decisions(self) -> list[dict[str, Any]]:
            """The decisions so far, in order."""
            return list(self.review.get("decisions", ()))

        def __repr__(self) -> str:
            return f"ReviewWidget({len(self.decisions)} decisions)"

    return ReviewWidget
