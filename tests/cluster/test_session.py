"""Joining a cluster: errors are one sentence, before anything is computed."""

from __future__ import annotations

import ipaddress
import pickle
import socket
import stat
import sys
import time
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest
import ray
from ray import cloudpickle
from typer.testing import CliRunner

import nodenova as nova
from nodenova.cli import app
from nodenova.cluster import probe
from nodenova.cluster.session import connect, remote
from nodenova.errors import SettingError
from nodenova.io.graph_folder.prepare import prepare_graph
from tests.cluster.machines import a_cluster

BENCH = ["bench", "comparison", "--datasets", "synthetic:nodes=80,classes=4,words=40"]


def free_address() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


def refusal(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, SettingError)
    return str(result.exception)


def test_without_ray_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert refusal(*BENCH, "--ray", "auto") == "--ray needs Ray: pip install 'nodenova[ray]'"


def test_an_address_at_which_nobody_answers_is_named(tmp_path: Path) -> None:
    address = free_address()
    assert f"--ray {address}: no answer" in refusal(
        *BENCH, "--ray", address, "--out", str(tmp_path)
    )


@pytest.mark.parametrize("address", ["", "here", "ray://10.0.0.1:10001", "10.0.0.1"])
def test_an_address_has_a_host_and_a_port(address: str) -> None:
    said = "--ray is auto (a Ray on this machine) or the HOST:PORT of a cluster's head, not "
    assert refusal(*BENCH, "--ray", address) == said + repr(address)


def test_what_is_not_in_a_graph_folder_is_not_split(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,topic,w\na,x,1\nb,y,0\nc,,1\nd,,0\n")
    (tmp_path / "edges.csv").write_text("source,target\na,b\nc,d\n")
    files = [f"--{name}={tmp_path / name}.csv" for name in ("nodes", "edges")]
    out = ["--out", str(tmp_path / "run"), "--quiet"]
    said = refusal("discover", *files, *out, "--label-column=topic", "--ray=auto")
    assert "--ray needs a graph folder: write one with nodenova prepare" in said
    assert not (tmp_path / "run").exists()


def test_other_encoders_than_prism_are_not_split(tmp_path: Path) -> None:
    prepare_graph(tmp_path / "graph", nova.synthetic(nodes=80, classes=4, words=40))
    (tmp_path / "new").write_text("0\n1\n2\n")
    options = ["--graph", str(tmp_path / "graph"), "--new-nodes", str(tmp_path / "new"), "--quiet"]
    method = ["--method", "sword", "--num-new", "1", "--out", str(tmp_path / "run")]
    said = refusal("discover", *options, *method, "--ray=auto")
    assert said == "--ray works with prism only; gcn is trained on one machine"


def test_a_machine_says_its_version_and_what_is_in_a_file(tmp_path: Path) -> None:
    assert probe.look(str(tmp_path / "not there")) == (nova.__version__, None)
    (tmp_path / "there").write_bytes(b"content")
    assert probe.look(str(tmp_path / "there")) == (nova.__version__, b"content")


def test_the_probe_runs_where_nodenova_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    cloudpickle.register_pickle_by_value(probe)
    try:
        content = cloudpickle.dumps(probe.look)
    finally:
        cloudpickle.unregister_pickle_by_value(probe)
    for name in [name for name in sys.modules if name.split(".")[0] == "nodenova"]:
        monkeypatch.setitem(sys.modules, name, None)
    assert pickle.loads(content)() == (None, None)


def is_loopback(address: str) -> bool:
    place = ipaddress.ip_address(address)
    return (getattr(place, "ipv4_mapped", None) or place).is_loopback


def listening() -> list[tuple[str, str]]:
    """Name and address of every listening socket of this process and of those it started."""
    me = psutil.Process()
    return [
        (process.name(), each.laddr.ip)
        for process in (me, *me.children(recursive=True))
        for each in process.net_connections("inet")
        if each.status == psutil.CONN_LISTEN
    ]


@pytest.mark.slow
def test_a_ray_of_our_own_listens_on_loopback_only_and_its_sockets_are_private() -> None:
    with connect("auto", num_cpus=1):
        running = remote(lambda: time.sleep(3)).remote()
        ray.wait([running], timeout=1.5)  # its process has started by then
        found = listening()
        assert len(found) >= 4, f"too few sockets to judge: {found}"
        assert [one for one in found if not is_loopback(one[1])] == []
        node = ray.nodes()[0]
        for name in ("RayletSocketName", "ObjectStoreSocketName"):
            mode = Path(node[name]).stat().st_mode
            assert stat.S_ISSOCK(mode)
            assert stat.S_IMODE(mode) & 0o077 == 0, (name, oct(mode))
        ray.get(running)


def test_a_ray_that_would_listen_elsewhere_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = []
    monkeypatch.setattr(ray, "init", lambda **options: None)
    monkeypatch.setattr(ray, "nodes", lambda: [{"NodeManagerAddress": "10.0.0.7"}])
    monkeypatch.setattr(ray, "shutdown", lambda: stopped.append(True))
    with pytest.raises(SettingError) as refused, connect("auto"):
        pytest.fail("a Ray on 10.0.0.7 was used")
    assert str(refused.value).startswith("--ray auto: Ray ")
    assert "10.0.0.7" in str(refused.value)
    assert stopped == [True]


@pytest.mark.slow
def test_a_machine_without_the_same_nodenova_or_without_the_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare_graph(tmp_path / "graph", nova.synthetic(nodes=80, classes=4, words=40))
    with a_cluster() as machines:
        with monkeypatch.context() as patch:
            patch.setattr("nodenova.cluster.session.__version__", "99.0")
            with pytest.raises(SettingError) as refused, connect(machines.address):
                pass
        assert str(refused.value).endswith(
            f"has nodenova {nova.__version__}; install nodenova[ray] 99.0 there"
        )
        other = tmp_path / "graph"
        monkeypatch.setattr(probe, "look", lambda file=None: (nova.__version__, None))
        with pytest.raises(SettingError) as refused, connect(machines.address, folder=other):
            pass
        assert f"does not have {other}; every machine must have the same" in str(refused.value)
        monkeypatch.setattr(probe, "look", lambda file=None: (None, None))
        with pytest.raises(SettingError) as refused, connect(machines.address):
            pass
        assert "has no nodenova; install nodenova[ray]" in str(refused.value)
