"""A language model so small that a test makes it: two layers of BERT, a hundred words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

WORDS = [f"word{number}" for number in range(95)]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def make_model(folder: Path, seed: int = 0, size: int = 16, modules: Sequence[Any] = ()) -> Path:
    """Write a model; with `modules`, (kind, path, config) each, as sentence-transformers does."""
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join([*SPECIAL, *WORDS]) + "\n")
    tokenizer = BertTokenizerFast(str(folder / "vocab.txt"))
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=100, hidden_size=size, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=32,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    listed = []
    for number, (kind, path, said) in enumerate(modules):
        (folder / path).mkdir(exist_ok=True)
        listed.append({"idx": number, "name": str(number), "path": path,
                       "type": f"sentence_transformers.models.{kind}"})  # fmt: skip
        if said is not None:
            (folder / path / "config.json").write_text(json.dumps(said))
    if listed:
        (folder / "modules.json").write_text(json.dumps(listed))
    return folder
