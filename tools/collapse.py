"""Why SWORD collapses into one new class when phase 1 trains a cosine head, and what helps.

    python tools/collapse.py --data-root DIR --datasets cora,citeseer --seeds 5

Labels of new nodes are used in the two columns marked (labels) alone. "centered": the mean of the
unlabelled nodes is subtracted before h^u and Eq. 3 read z; "longer": z is scaled to the mean length
that it has with the linear head. Neither is a setting of SWORD: they show which of the two
properties that a cosine phase 1 removes makes the difference.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import fmean
from types import SimpleNamespace
from unittest import mock

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import nodenova as nova
from nodenova import losses
from nodenova.bench.render import markdown
from nodenova.io.dataset_table import DATASETS
from nodenova.methods import sword


def node_statistics(z: Tensor, y: np.ndarray) -> dict[str, float]:
    """Statistics of the unlabelled nodes before phase 2, of (n, hidden) z and their classes y."""
    unit = F.normalize(z, dim=1)
    apart = ~torch.eye(len(z), dtype=torch.bool)
    agree = losses.same_top_k(z, 3).float()
    same = torch.from_numpy(y[:, None] == y[None, :]) & apart
    beside = (z - z.mean(dim=0)).square().sum() / z.square().sum()
    return {
        "length of z": float(z.norm(dim=1).mean()),
        "mean cosine of two nodes": float((unit @ unit.t())[apart].mean()),
        "share of z beside the common mean, %": 100 * float(beside),
        "pairs with equal top 3, %": 100 * float(agree[apart].mean()),
        "the same, of one class (labels), %": 100 * float(agree[same].mean()),
    }


@contextmanager
def transformed_z(mean: Tensor | None, factor: float) -> Iterator[None]:
    """Make SWORD read z as (z - mean) * factor in h^u and in Eq. 3."""

    class Reads(nn.Linear):
        def forward(self, z: Tensor) -> Tensor:
            return super().forward((z if mean is None else z - mean) * factor)

    def top_k(z: Tensor, k: int) -> Tensor:
        return losses.top_k_sets(z if mean is None else z - mean, k)

    with (
        mock.patch.object(sword, "top_k_sets", top_k),
        mock.patch.object(sword, "nn", SimpleNamespace(Linear=Reads)),
    ):
        yield


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--datasets", default="cora,citeseer")
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for name in arguments.datasets.split(","):
        labelled = nova.load_dataset(name, arguments.data_root)
        old, new, exam = nova.split(labelled, range(DATASETS[name].num_old))
        ids = torch.from_numpy(new.ids)
        for seed in range(arguments.seeds):
            models = {
                h: nova.fit(old, "gcn", seed=seed, hidden=DATASETS[name].hidden, head=h)
                for h in ("linear", "cosine")
            }
            z = {
                head: torch.from_numpy(model.embed(new.graph))[ids]
                for head, model in models.items()
            }
            mean = z["cosine"].mean(dim=0)
            longer = float(z["linear"].norm(dim=1).mean() / z["cosine"].norm(dim=1).mean())
            ways = {
                "linear": ("linear", None, 1.0),
                "cosine": ("cosine", None, 1.0),
                "cosine, longer": ("cosine", None, longer),
                "cosine, centered": ("cosine", mean, 1.0),
                "cosine, centered and longer": ("cosine", mean, longer),
            }
            for way, (head, center, factor) in ways.items():
                with transformed_z(center, factor):
                    model = nova.discover(models[head], new, nova.Sword(), seed=seed)
                grade = nova.grade(model, exam)
                pseudo = model.stages[-1].history["pseudo"]
                about = node_statistics(z[head], labelled.y[new.ids]) if way in models else {}
                about |= {"L_Pseudo, first epoch": pseudo[0], "last epoch": pseudo[-1]}
                about |= {
                    "new classes used": grade.collapse["new_used"],
                    "largest of them, %": grade.collapse["new_largest"],
                }
                about |= {"All (labels)": grade.scores("block")["all"]}
                found.setdefault((name, way), []).append(about)
        columns = list(next(iter(found.values()))[0])
        lines = []
        for (graph, way), rows in found.items():
            means = (
                f"{fmean(row[c] for row in rows):.2f}" if c in rows[0] else "" for c in columns
            )
            lines.append([graph, way, *means])
        print(markdown(["graph", "phase 1", *columns], lines), flush=True)


if __name__ == "__main__":
    main()
