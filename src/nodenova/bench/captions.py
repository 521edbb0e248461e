"""What stands under each table of the bench: how its numbers were made and how they are read."""

from __future__ import annotations

from nodenova.bench.cells import MIN_PAIRS

SPREAD = "mean ± sample standard deviation over"
PERCENT = f"Percent of the test nodes, {SPREAD} seeds (how many: column n)."
BLOCK = (
    "Discovered classes are matched one to one among the new classes (block); old ids are fixed."
)
BESIDE = "In parentheses the paper's number: one run, matched by identity."
BEST = (
    "Best bold, runner-up underlined, by block of lines, among methods without labels in phase 2."
)
LABELS = "† was given labels (or old nodes) in phase 2 and is never best."
TESTED = (
    "▲ ▼ better or worse than {}: paired t-test on common seeds, Holm-corrected over the table, "
    "p < 0.05, and exact Wilcoxon signed-rank test p < 0.05; △ ▽ by the t-test alone. "
    f"Fewer than {MIN_PAIRS} common seeds: no claim."
)
AVERAGE = (
    "Average: over the datasets shown, of ours and of the paper's numbers, "
    "where all of them are there."
)
HIDES = (
    "All can be high while no new class is found at all (never new); "
    "H, the harmonic mean of Old and New, cannot."
)
LOTTERY = (
    "The discovered class with number i must be the true class i, as the paper counts. "
    "Without labels a method cannot know these numbers, so New is a lottery here: "
    "nothing is marked and nothing is tested."
)
MASKED = (
    "Inductive: a phase sees only nodes of the classes met so far, features and edges of the "
    "others are masked (the paper's text); tested on the whole graph."
)
TO_SWORD = TESTED.format("SWORD")

COMPARISON = (PERCENT, BLOCK, BESIDE, BEST, LABELS, TO_SWORD, AVERAGE, HIDES)
IDENTITY = (PERCENT, LOTTERY, BESIDE, LABELS, AVERAGE)
INDUCTIVE = (PERCENT, MASKED, BLOCK, BESIDE, BEST, LABELS, TO_SWORD, AVERAGE)
HEADS = (
    PERCENT,
    BLOCK,
    "Old and All by the joint head; New-N: test nodes of new classes only, "
    "by the head for new classes.",
    BESIDE,
    BEST,
    LABELS,
    TO_SWORD,
)
FORGETTING = (
    PERCENT,
    BLOCK,
    "AA: mean of Old and New after phase 2. "
    "AF: Old after phase 2 minus Old after phase 1; negative is forgotten.",
    BESIDE,
    BEST,
    LABELS,
    TO_SWORD,
    AVERAGE,
)
ABLATION = (
    PERCENT,
    BLOCK,
    "SWORD with only the losses that have a ✓; the others have weight zero.",
    BESIDE,
    BEST,
    TESTED.format("SWORD with all five"),
)
SENSITIVITY = (
    PERCENT,
    BLOCK,
    "SWORD with one parameter changed and all others as they are by default. "
    "The paper shows curves without numbers, "
    "and none for k, the number of top activations that must agree.",
)
LAYERS = (
    PERCENT,
    BLOCK,
    "Everything else as it is by default. The paper shows curves without numbers.",
)
CLASS_SPLITS = (
    f"Percent of the test nodes, {SPREAD} random choices of the old classes "
    "(how many: column n; seeds of one choice are averaged first).",
    BLOCK,
    "Balanced: as many unlabelled nodes of each new class; "
    "as-it-comes: drawn at random from all of them.",
    BEST,
    LABELS,
    TO_SWORD.replace("seeds", "class splits"),
)
CONFUSION = (
    "Percent of the nodes of the true class (lines) by predicted class (columns), "
    f"{SPREAD} seeds (how many: column n).",
    BLOCK,
)
TSNE = (
    PERCENT,
    "The maps in numbers: agreement of true and predicted classes over all test nodes (NMI, ARI), "
    "and how many nodes are put on the right side, old or new (old-new accuracy). "
    "The panels are in the page.",
    LABELS,
)


def collapse(how_many: str) -> tuple[str, ...]:
    """Under the table of which new classes are used.

    Args:
        how_many: New classes there are to be found, by dataset.
    """
    return (
        "Does a method use the classes it was told to find? "
        "Mean ± sample standard deviation over seeds (column n).",
        "Used: how many discovered classes are said of at least one test node, "
        f"of those to be found: {how_many}.",
        "Full: percent of the seeds in which all of them are. "
        "Largest: percent of the test nodes called new that are in the largest discovered class, "
        "over the seeds in which any is.",
        LABELS,
    )
