"""A long run: fits, discoveries, saves, loads and reviews in one process, which must not grow."""

from __future__ import annotations

import gc
import os
import tempfile
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import nodenova as nova

ROUNDS = 200
WARM_UP = 10  # rounds before the first measurement: caches and lazy imports
GROWTH = 32  # megabytes that the process may grow between the first and the last measurement


def run(seed: int, scale: float, out: Path) -> dict[str, Any]:
    """Run the rounds and measure memory, handles and threads at start, middle and end."""
    rounds = max(4, round(ROUNDS * scale))
    measured: dict[str, dict[str, float]] = {}
    marks = {0: "start", rounds // 2: "middle", rounds: "end"}
    failures = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(-WARM_UP, rounds + 1):
            one_round(seed + number % 7, Path(folder) / "run")
            if number in marks:
                measured[marks[number]] = measure()
                print(marks[number], measured[marks[number]], flush=True)
    start, end = measured["start"], measured["end"]
    for name, limit in (("megabytes", GROWTH), ("handles", 0), ("threads", 0)):
        if end[name] > start[name] + limit:
            failures.append(
                {
                    "what": f"{name} grow",
                    "reproduce": f"python -m tools.attack long_run --seed {seed}",
                    "error": "growth",
                    "place": "",
                    "line": f"{start[name]} at the start, {end[name]} after {rounds} rounds",
                }
            )
    return {
        "rounds": rounds,
        "measured": measured,
        "allowed_megabytes": GROWTH,
        "failures": failures,
    }


def one_round(seed: int, folder: Path) -> None:
    """Fit, discover, write a run, open it, review it, take the review back, save and load."""
    data = nova.synthetic(nodes=80, classes=4, words=60, words_per_node=8, seed=seed)
    y = [c if c < 2 and i % 3 else None for i, c in enumerate(data.y.tolist())]
    method = nova.Prism(n_resamples=0, restarts=2)
    found = nova.NodeDiscoverer(num_new=2, method=method).fit(data.graph, y)
    found.report(folder, overwrite=True)
    run = nova.open_run(folder)
    last = run.model.classes[-1].id
    run.apply([{"do": "rename", "class": last, "name": f"class of round {seed}"}])
    run.undo()
    found.model_.save(folder.with_name("model"))
    model = nova.load_model(folder.with_name("model"))
    assert np.isfinite(model.predict_proba(data.graph)).all()
    old, new, _ = nova.split(data, [0, 1], seed=seed)
    trained = nova.fit(old, "gcn", hidden=8, epochs=3, seed=seed)
    nova.discover(trained, new, nova.FrozenKMeans(restarts=2), seed=seed).predict(data.graph)


def measure() -> dict[str, float]:
    """Return the resident megabytes, open handles and threads of this process."""
    gc.collect()
    status = Path("/proc/self/status").read_text().splitlines()
    resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    threads = next(int(line.split()[1]) for line in status if line.startswith("Threads"))
    assert threads >= threading.active_count()
    handles = len(os.listdir("/proc/self/fd"))
    return {"megabytes": round(resident / 1024, 1), "handles": handles, "threads": threads}
