"""Methods that are given labels in phase 2, marked † wherever they are shown.

They run through an entrance of their own (`entrance.discover_supervised`). To add one: a frozen
dataclass with `needs` (what the entrance has to pass on, out of NEEDS) and one function, `learn`;
then its entry here. It gets nothing that `needs` does not name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from nodenova.settings import Entry, Registry

if TYPE_CHECKING:
    from nodenova.data.labels import LabelledNewTask
    from nodenova.model.model import Model

NEEDS = ("new_labels", "old_nodes", "old_labels", "validation")


@runtime_checkable
class LabelledMethod(Protocol):
    """Protocol of a method that is given labels: a frozen dataclass, its fields its settings.

    Attributes:
        needs: Names of what it must be given, out of "new_labels", "old_nodes", "old_labels" and
            "validation".

    Examples:
        >>> import nodenova as nova
        >>> gem = nova.LABELLED["gem"](epochs=5)
        >>> isinstance(gem, nova.LabelledMethod)
        True
        >>> gem.needs
        ('new_labels', 'old_nodes', 'old_labels')
    """

    needs: ClassVar[tuple[str, ...]]

    def learn(self, model: Model, task: LabelledNewTask) -> Model:
        """Learn `task.num_new` new classes.

        PyTorch's generator is seeded before the call; every random number comes from it.

        Args:
            model: Model of the classes known so far. `encoder()` and `head()` return copies that
                may be trained.
            task: Visible graph, ids of the new nodes, and those labels and old nodes that `needs`
                names.

        Returns:
            The model with `task.num_new` more classes, built by `Model.grown`.
        """


LABELLED = Registry(
    {
        "gem": Entry(
            "nodenova.supervised.gem:GEM",
            "GEM",
            epochs=200, lr=0.01, weight_decay=5e-4, memory=10, margin=0.5, logits="all",
        ),
        "er_gnn": Entry(
            "nodenova.supervised.er_gnn:ERGNN",
            "ER-GNN",
            epochs=200, lr=0.01, weight_decay=5e-4, memory=10, choice="mf", distance=0.5,
            damping=5e-4,
        ),
        "twp": Entry(
            "nodenova.supervised.twp:TWP",
            "TWP",
            epochs=200, lr=0.01, weight_decay=5e-4, lambda_l=100.0, lambda_t=100.0, beta=0.01,
        ),
        "cpca": Entry(
            "nodenova.supervised.cpca:CPCA",
            "CPCA",
            epochs=200, lr=0.01, weight_decay=5e-4, replay=10.0, draws=20, augment=1.0,
            distill=10.0,
        ),
        "sword_as_released": Entry(
            "nodenova.supervised.sword_as_released:SwordAsReleased",
            "SWORD as released",
            epochs=530, lr=0.01, weight_decay=5e-4, alpha1=0.08, alpha2=5.0, rampup_epochs=50,
            eta=0.2, draws=2, omega=10.0, novel=1.8, base=0.5,
        ),
        "autonovel_ncd": Entry(
            "nodenova.supervised.autonovel_ncd:AutoNovelNCD",
            "AutoNovel, NCD",
            epochs=200, lr=0.01, weight_decay=5e-4, old=1.0, k=5, pairwise=1.0, omega=5.0,
            rampup_epochs=50, incremental=True, increment=0.05, eta=0.2, pair_nodes=4096,
        ),
        "ncl_ncd": Entry(
            "nodenova.supervised.ncl_ncd:NCLNCD",
            "NCL, NCD",
            epochs=200, lr=0.01, weight_decay=5e-4, old=1.0, pairwise=1.0, lam=0.95, omega=5.0,
            rampup_epochs=50, contrast=1.0, old_contrast=0.1, alpha=0.2, neighbors=0, hard=0.2,
            tau=0.05, eta=0.2, new_rows="concatenated", pair_nodes=1024,
        ),
        "dtc_ncd": Entry(
            "nodenova.supervised.dtc_ncd:DTCNCD",
            "DTC, NCD",
            epochs=200, lr=0.01, weight_decay=5e-4, old=1.0, alpha=1.0, clustering=1.0,
            warmup=10, update=5, omega=10.0, rampup_epochs=5, eta=0.2, restarts=20,
            new_rows="concatenated",
        ),
        "oracle": Entry(
            "nodenova.supervised.oracle:Oracle",
            "oracle (ceiling)",
            epochs=400, lr=0.01, weight_decay=5e-4, patience=100, hidden=64, dropout=0.8,
        ),
    }
)  # fmt: skip
"""Methods that are given labels in phase 2, by their names on the command line."""
