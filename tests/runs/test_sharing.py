"""What is passed on: a page without private parts, and models on a hub."""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import numpy as np
import pytest

import nodenova as nova
from nodenova.errors import SettingError, StorageError
from nodenova.runs.folder import RunFolder
from nodenova.runs.hub import disclosures, model_card
from tests.runs.tables import COLUMNS, files, nodenova, write_tables

QUICK = nova.Prism(restarts=2, n_resamples=0)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    place = tmp_path_factory.mktemp("shared")
    data = write_tables(place / "spring", last=90)
    found = ["--num-new", 1, "--set", "n_resamples=0", "-q", "--out", place / "run"]
    nodenova("discover", *files(data), *COLUMNS, *found, "--show", "text")
    return nova.open_run(place / "run")


@pytest.fixture(scope="module")
def hubs() -> nova.NodeDiscoverer:
    """Classes that are known by structure alone, which are named after a node."""
    rng = np.random.default_rng(0)
    y = np.arange(90) // 30
    a, b = rng.integers(90, size=(2, 900))
    inside = (y[a] == y[b]) & (a != b)
    ids = [f"person-{i}" for i in range(90)]
    ends = np.array([a[inside], b[inside]])
    links = {"source": [ids[i] for i in ends[0]], "target": [ids[i] for i in ends[1]]}
    import pandas as pd

    labels = [str(c) if c < 2 and i % 2 else "" for i, c in enumerate(y.tolist())]
    nodes = pd.DataFrame({"id": ids, "label": labels})
    return nova.NodeDiscoverer(1, method=QUICK).fit((nodes, pd.DataFrame(links)))


def story(page: str) -> dict[str, Any]:
    data = re.search(r'id="story">(.*?)</script>', page, re.S)
    assert data is not None
    return json.loads(data[1])


def test_a_page_without_private_parts_has_no_ids_and_no_texts(
    run: RunFolder, tmp_path: Path
) -> None:
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    printed = nodenova("report", run.path, "--no-private", "--out", tmp_path / "shared.html")
    assert "the page has no ids, texts, labels and edges of nodes" in printed
    page = (tmp_path / "shared.html").read_text(encoding="utf-8")
    whole = (run.path / "report.html").read_text(encoding="utf-8")
    ids = [f'"{node}"' for node in run.graph.node_ids.tolist()]
    assert all(node in whole for node in ids)
    assert not [node for node in ids if node in page]
    texts = [text for text in run.run.node_texts["text"] if text]
    assert any(text in whole for text in texts)
    assert not [text for text in texts if text in page]
    data = story(page)
    assert data["review"]["model"] == ""
    assert data["edges"] is None
    assert not {"degree", "near", "start", "targets"} & {*data}
    assert "What next?" not in page
    assert data["texts"] == []
    assert data["given"] is None
    assert data["suggestions"] == []
    assert run.document["facts"]["Note 1"] not in page
    for name in run.class_names:
        assert name in page
    assert '<body class="review read-only">' in page
    # The run itself is as it was.
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before


def test_a_class_that_is_named_after_a_node_has_no_name_there(
    hubs: nova.NodeDiscoverer, tmp_path: Path
) -> None:
    hubs.report(tmp_path / "run")
    assert "around node person-" in (tmp_path / "run/report.html").read_text()
    nova.open_run(tmp_path / "run").public_report(tmp_path / "shared.html")
    assert "person-" not in (tmp_path / "shared.html").read_text()


def test_a_page_to_pass_on_is_written_elsewhere(run: RunFolder, tmp_path: Path) -> None:
    for more in (["--no-private"], ["--out", tmp_path / "x.html"]):
        with pytest.raises(SettingError, match="--out is for the page that --no-private writes"):
            nodenova("report", run.path, *more)
    with pytest.raises(StorageError, match="is a folder, and the page is a file"):
        run.public_report(tmp_path)


class Hub(BaseHTTPRequestHandler):
    """What huggingface_hub asks of a hub, for one branch and small files."""

    repositories: ClassVar[dict[str, dict[str, bytes]]] = {}
    seen: ClassVar[list[dict[str, Any]]] = []

    def _json(self, content: object, code: int = 200) -> None:
        body = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def do_POST(self) -> None:
        body = self._body()
        self.seen.append({"path": self.path, "key": self.headers.get("Authorization")})
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            name = "/".join(filter(None, (asked.get("organization"), asked["name"])))
            self.repositories.setdefault(name, {})
            self.seen[-1] |= asked
            self._json({"url": f"http://{self.headers['Host']}/{name}"})
        elif "/preupload/" in self.path:
            names = [file["path"] for file in json.loads(body)["files"]]
            modes = [{"path": n, "uploadMode": "regular", "shouldIgnore": False} for n in names]
            self._json({"files": modes})
        elif "/commit/" in self.path:
            name = self.path.removeprefix("/api/models/").partition("/commit/")[0]
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    content = base64.b64decode(line["value"]["content"])
                    self.repositories[name][line["value"]["path"]] = content
            url = f"http://{self.headers['Host']}/{name}"
            self._json({"success": True, "commitOid": "a" * 40, "commitUrl": f"{url}/commit/a"})
        else:
            self._json({"errors": [], "warnings": []})

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path.startswith("/api/models/"):
            name = "/".join(path.removeprefix("/api/models/").split("/")[:2])
            if name not in self.repositories:
                self.send_response(404)
                self.send_header("X-Error-Code", "RepoNotFound")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            content = self.repositories[name]
            if "/tree/" in path:
                self._json([
                    {"type": "file", "path": n, "size": len(c), "oid": "b" * 40}
                    for n, c in content.items()
                ])  # fmt: skip
                return
            siblings = [{"rfilename": n} for n in content]
            self._json({"id": name, "modelId": name, "sha": "a" * 40, "siblings": siblings})
            return
        name, _, rest = path.removeprefix("/").partition("/resolve/")
        body = self.repositories[name][rest.partition("/")[2]]
        self.send_response(200)
        self.send_header("ETag", f'"{hash(body)}"')
        self.send_header("X-Repo-Commit", "a" * 40)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *parts: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(Hub, "repositories", {})
    monkeypatch.setattr(Hub, "seen", [])
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_model_goes_to_a_hub_and_comes_back(run: RunFolder, hub: str) -> None:
    address = run.push_to_hub("me/shop-classes", token="hf_secret", endpoint=hub)
    assert address.endswith("/me/shop-classes")
    files = Hub.repositories["me/shop-classes"]
    kinds = sorted(name.split("-")[0] for name in files)
    assert kinds == ["README.md", "model.json", "weights"]
    assert {one["key"] for one in Hub.seen} == {"Bearer hf_secret"}
    made = next(one for one in Hub.seen if one["path"] == "/api/repos/create")
    assert made.get("private") is True or made.get("visibility") == "private"
    model = nova.from_hub("me/shop-classes", endpoint=hub, token=False or None)
    assert np.array_equal(model.predict(run.stored_graph), run.model.predict(run.stored_graph))
    # No id, no label of a node.
    text = (files["README.md"] + files["model.json"]).decode()
    assert not [node for node in run.graph.node_ids.tolist() if f'"{node}"' in text]
    # Pushed again, the card and the model are replaced.
    nova.push_to_hub(run.model, "me/shop-classes", endpoint=hub, token="hf_secret")
    assert "How far to trust it" not in Hub.repositories["me/shop-classes"]["README.md"].decode()


def test_what_a_hub_refuses_is_one_sentence(run: RunFolder, hub: str) -> None:
    with pytest.raises(StorageError, match="'me/nothing' on the hub: RepositoryNotFoundError"):
        nova.from_hub("me/nothing", endpoint=hub, token="x")
    Hub.repositories["me/empty"] = {"README.md": b"mine"}
    with pytest.raises(StorageError, match="me/empty"):
        nova.from_hub("me/empty", endpoint=hub, token="x")
    with pytest.raises(StorageError, match="on the hub: HFValidationError"):
        run.push_to_hub("no/such/name", endpoint=hub, token="x")
    with pytest.raises(SettingError, match="a model comes from a fitted NodeDiscoverer"):
        nova.push_to_hub("runs/mine", "me/shop")


def test_a_damaged_model_of_a_hub_is_refused(run: RunFolder, hub: str) -> None:
    run.push_to_hub("me/shop", endpoint=hub, token="x")
    files = Hub.repositories["me/shop"]
    weights = next(name for name in files if name.startswith("weights"))
    files[weights] = files[weights][:-1] + b"\x00"
    with pytest.raises(StorageError, match=r"me/shop.*damaged"):
        nova.from_hub("me/shop", endpoint=hub, token="x")


def test_without_its_package_is_one_sentence(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    for call in (lambda: run.push_to_hub("me/shop"), lambda: nova.from_hub("me/shop")):
        with pytest.raises(SettingError, match=r"pip install 'nodenova\[hub\]'"):
            call()


def test_the_card_is_made_from_the_run(run: RunFolder, hubs: nova.NodeDiscoverer) -> None:
    card = model_card(run.run, "me/shop")
    assert card.startswith("---\nlibrary_name: nodenova\n")
    assert 'nova.from_hub("me/shop")' in card
    for info in run.classes:
        assert f"| {info.id} | {info.name} | {info.kind} | {info.size:,} |" in card
    scores = run.run.held_out_scores
    assert scores is not None
    assert scores.sentence.replace("_", "\\_") in card
    assert "- Method: prism on prism" in card
    assert "Note 1" not in card
    assert "- the model holds no graph, no node id and no label of a node" in card
    own = model_card(run.run.with_names({2: "a|b <script>"}), "me/shop")
    assert "| a\\|b &lt;script> |" in own
    assert "person-" not in model_card(hubs.run_, "me/people")


def test_a_model_of_a_graph_without_features_discloses_ids(hubs: nova.NodeDiscoverer) -> None:
    first, second, *_ = disclosures(hubs.model_)
    assert first == "the model holds no graph and no label of a node"
    assert re.fullmatch(r"it holds ids of \d+ nodes: its features are links to these nodes", second)
