"""The loopback server: what it refuses, over real sockets, and the one thing it takes."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nodenova as nova
from nodenova.cli import review
from nodenova.errors import SettingError, brief
from nodenova.model.decisions import MAX_CHOSEN, Create, Merge, Rename, Unlabel
from nodenova.model.saving import weights_digest
from nodenova.review.review_file import Review
from nodenova.runs.folder import RunFolder
from nodenova.runs.run import DiscoveryRun
from nodenova.runs.server import MAX_BYTES, ReviewServer

FINE = Review("fine")
PAGE = "<!DOCTYPE html><title>page</title>äöü"


class ReviewSession:
    def __init__(self) -> None:
        self.saved: list[Review] = []

    def save(self, review: Review) -> None:
        if review.model == "wrong":
            raise SettingError("class 9 is not there")
        if review.model == "broken":
            raise KeyError("bug")
        if review.model == "full":
            raise OSError(28, "No space left on device", "runs/x/review.json")
        self.saved.append(review)


@pytest.fixture
def desk() -> ReviewSession:
    return ReviewSession()


@pytest.fixture
def server(desk: ReviewSession) -> Iterator[ReviewServer]:
    with running_server(ReviewServer(lambda: PAGE, desk.save)) as running:
        yield running


@contextmanager
def running_server(server: ReviewServer) -> Iterator[ReviewServer]:
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def ask(
    server: ReviewServer, method: str, path: str, body: str | None = None, **headers: str
) -> tuple[int, str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    try:
        connection.putrequest(method, path, skip_host="Host" in headers)
        content = None if body is None else body.encode()
        if content is not None and "Content_Length" not in headers:
            headers["Content_Length"] = str(len(content))
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders(content)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers
    finally:
        connection.close()


def path_of(server: ReviewServer) -> str:
    return server.url.removeprefix(f"http://127.0.0.1:{server.server_port}")


def enter(server: ReviewServer) -> str:
    """Open the printed link; the cookie it gives."""
    status, _, headers = ask(server, "GET", path_of(server))
    assert (status, headers["Location"]) == (303, "/")
    assert {"HttpOnly", "SameSite=Strict"} <= set(headers["Set-Cookie"].split("; "))
    return headers["Set-Cookie"].split(";")[0]


def post(
    server: ReviewServer, cookie: str, review: Review = FINE, **headers: str
) -> tuple[int, str]:
    given = {
        "Cookie": cookie,
        "Origin": f"http://127.0.0.1:{server.server_port}",
        "Content_Type": "application/json",
    }
    return ask(server, "POST", "/review", json.dumps(review.to_json()), **{**given, **headers})[:2]


def test_the_link_gives_the_page_once(server: ReviewServer) -> None:
    cookie = enter(server)
    status, content, headers = ask(server, "GET", "/", Cookie=cookie)
    assert (status, content) == (200, PAGE)
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Frame-Options"] == "DENY"
    status, content, _ = ask(server, "GET", path_of(server))
    assert status == 403
    assert "used already" in content
    assert (
        ask(server, "GET", path_of(server), Cookie=cookie)[0] == 303
    )  # the same browser may click it again


@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=wrong", "/?token=%C3%A4", "/?other=1"])
def test_without_the_token_there_is_no_page(server: ReviewServer, path: str) -> None:
    assert ask(server, "GET", path)[0] == 403
    enter(server)  # a wrong guess does not use up the token


def test_it_listens_on_this_machine_only(server: ReviewServer) -> None:
    assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1.evil:{port}",
        "",
    ],
)
def test_another_host_name_is_refused(server: ReviewServer, desk: ReviewSession, host: str) -> None:
    cookie, name = enter(server), host.format(port=server.server_port)
    assert ask(server, "GET", "/", Cookie=cookie, Host=name)[0] == 421
    assert post(server, cookie, Host=name, Origin=f"http://{name}")[0] == 421
    assert not desk.saved


def test_localhost_is_this_machine_too(server: ReviewServer, desk: ReviewSession) -> None:
    name = f"localhost:{server.server_port}"
    cookie = enter(server)
    assert ask(server, "GET", "/", Cookie=cookie, Host=name)[0] == 200
    assert post(server, cookie, Host=name, Origin=f"http://{name}")[0] == 200
    assert desk.saved == [FINE]


@pytest.mark.parametrize(
    "path",
    [
        "/run.json",
        "/../run.json",
        "//etc/passwd",
        "/%2e%2e/run.json",
        "/review",
        "/index.html",
        "/..",
        "/./",
    ],
)
def test_other_paths_are_refused(server: ReviewServer, path: str) -> None:
    cookie = enter(server)
    status, content, _ = ask(server, "GET", path, Cookie=cookie)
    assert status == 404
    assert PAGE not in content


@pytest.mark.parametrize("method", ["PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(server: ReviewServer, method: str) -> None:
    assert ask(server, method, "/", Cookie=enter(server))[0] == 501


def test_a_review_is_kept(server: ReviewServer, desk: ReviewSession) -> None:
    review = Review("a", (Rename(4, "plants ü"), Merge((5, 6))))
    assert post(server, enter(server), review) == (200, "saved\n")
    assert desk.saved == [review]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Cookie": "nodenova=guess"}, 403),
        ({"Cookie": ""}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content_Length": "-1"}, 411),
        ({"Content_Length": "ten"}, 411),
        ({"Transfer_Encoding": "chunked"}, 411),
        ({"Content_Length": str(MAX_BYTES + 1)}, 413),
        ({"Content_Length": "9" * 400}, 413),
    ],
)
def test_a_forged_or_malformed_review_is_refused(
    server: ReviewServer, desk: ReviewSession, headers: dict[str, str], status: int
) -> None:
    assert post(server, enter(server), **headers)[0] == status
    assert not desk.saved


def test_a_review_goes_to_its_own_path_only(server: ReviewServer, desk: ReviewSession) -> None:
    cookie, origin = enter(server), f"http://127.0.0.1:{server.server_port}"
    for path in ("/", "/review/../x", "/review?x=1", "/../review"):
        answer = ask(
            server,
            "POST",
            path,
            "{}",
            Cookie=cookie,
            Origin=origin,
            Content_Type="application/json",
        )
        assert answer[0] == 404
    assert not desk.saved


def test_what_is_wrong_with_a_review_is_said(server: ReviewServer, desk: ReviewSession) -> None:
    cookie = enter(server)
    assert post(server, cookie, Review("wrong")) == (422, "class 9 is not there\n")
    assert post(server, cookie, Review("full")) == (
        500,
        "runs/x/review.json: No space left on device\n",
    )
    assert post(server, cookie, Review("broken")) == (500, "not saved, KeyError: 'bug'\n")
    origin = f"http://127.0.0.1:{server.server_port}"
    for body in ("{", "[" * 100_000, "\\x00"):
        answer = ask(
            server,
            "POST",
            "/review",
            body,
            Cookie=cookie,
            Origin=origin,
            Content_Type="application/json",
        )
        assert answer[0] == 400
    answer = ask(
        server,
        "POST",
        "/review",
        '{"decisions": []}',
        Cookie=cookie,
        Origin=origin,
        Content_Type="application/json",
    )
    assert answer[:2] == (
        422,
        'this is not a review: expected "format": "nodenova review"\n',
    )
    assert post(server, cookie)[0] == 200  # and it goes on
    assert desk.saved == [FINE]


def test_a_decision_about_very_many_nodes_is_taken_up_to_a_limit(
    server: ReviewServer, desk: ReviewSession
) -> None:
    cookie = enter(server)
    nodes = tuple(f"a name of ordinary length {i:06}" for i in range(MAX_CHOSEN + 1))
    most = Review("a", (Create(nodes[1:], "ferns"),))
    assert post(server, cookie, most) == (200, "saved\n")
    assert desk.saved == [most]
    assert post(server, cookie, Review("a", (Unlabel(nodes),))) == (
        422,
        "decision 1 (unlabel): nodes must be a list of at most 100,000 ids of nodes, not "
        f"{brief(list(nodes))}\n",
    )
    assert desk.saved == [most]


@pytest.fixture
def reviewed(tmp_path: Path) -> Iterator[tuple[ReviewServer, RunFolder]]:
    """A run of twelve nodes in each of four classes, on a server."""
    data = nova.synthetic(nodes=60, classes=4, words=30)
    old, task, _ = nova.split(data, [0, 1])
    model = nova.discover(nova.fit(old), replace(task, num_new=2))
    run = DiscoveryRun("Mine", model, data.graph, label_ids=np.where(data.y < 2, data.y, -1),
                       label_names=("oak", "elm"))  # fmt: skip
    folder = RunFolder.write(tmp_path / "run", run, report=False)
    session = review.ReviewSession(folder.path, quiet=True)
    with running_server(ReviewServer(session.page, session.save)) as server:
        yield server, folder


def test_decisions_about_nodes_are_saved_whole_or_refused_with_a_sentence(
    reviewed: tuple[ReviewServer, RunFolder],
) -> None:
    server, folder = reviewed
    cookie, nodes = enter(server), tuple(folder.stored_graph.node_ids.tolist())
    digest = weights_digest(folder.model)
    before = (folder.path / "model" / "model.json").read_bytes()
    name = folder.model.classes[2].name
    first = Unlabel(nodes[:1])
    for wrong, message in (
        (Create((*nodes[:3], "nowhere")), "there is no node 'nowhere' in the graph of the run"),
        (Create(nodes[:2]), "a class is made of 3 nodes or more, not of 2"),
        (Create(nodes[:5], name), f"class 2 already has the name '{name}'"),
        (Create(nodes[:5], class_id=7), "the new class gets the id 4, not 7: the request was made"),
        (Create(nodes[:5], among=4), "5 of 4 shown nodes cannot be of a graph of 60"),
    ):
        status, answer = post(server, cookie, Review(digest, (first, wrong)))
        assert status == 422
        assert answer.startswith("decision 2 (create): ")
        assert message in answer
        assert answer.count("\n") == 1
    status, answer = post(server, cookie, Review(digest, (Unlabel(("nowhere",)),)))
    assert (status, answer) == (
        422, "unlabel: there is no node 'nowhere' in the graph of the run\n",
    )  # fmt: skip
    assert (folder.path / "model" / "model.json").read_bytes() == before
    assert not (folder.path / "decisions.json").exists()
    wanted = (first, Create(nodes[10:16], "ferns", 4))
    assert post(server, cookie, Review(digest, wanted)) == (200, "saved\n")
    again = RunFolder(folder.path)
    assert again.history.decisions == wanted
    assert again.run.label_ids is not None
    assert again.run.label_ids[[0, *range(10, 16)]].tolist() == [-1, *[4] * 6]


def connect(server: ReviewServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.server_port), timeout=20)


def test_silent_connections_do_not_stop_it(server: ReviewServer) -> None:
    """Browsers open connections ahead of need; the oldest silent ones are closed first."""
    silent = [connect(server) for _ in range(40)]
    cookie = enter(server)
    assert ask(server, "GET", "/", Cookie=cookie)[:2] == (200, PAGE)
    assert post(server, cookie) == (200, "saved\n")
    # The newest are still served.
    silent[-1].sendall(b"GET / HTTP/1.0\r\n\r\n")
    assert silent[-1].recv(12) == b"HTTP/1.0 421"
    assert silent[0].recv(1) == b""
    for connection in silent:
        connection.close()


def test_a_request_that_is_being_answered_is_not_closed_for_another(desk: ReviewSession) -> None:
    making, go = threading.Event(), threading.Event()

    def page() -> str:
        making.set()
        assert go.wait(20)
        return PAGE

    with running_server(ReviewServer(page, desk.save, max_connections=1)) as server:
        cookie = enter(server)
        answers: list[Any] = []

        def read() -> None:
            while not answers:  # the one connection may still be that of the link
                with suppress(OSError, http.client.HTTPException):
                    answers.append(ask(server, "GET", "/", Cookie=cookie))

        reader = threading.Thread(target=read)
        reader.start()
        assert making.wait(20)
        with connect(server) as other:
            assert other.recv(1) == b""  # turned away: nothing silent could be closed for it
        go.set()
        reader.join()
    assert answers[0][:2] == (200, PAGE)


@pytest.mark.parametrize("start", [b"", b"POST /review HTTP/1.1\r\nContent-Length: 99\r\nX: "])
def test_a_whole_request_has_a_time_limit(desk: ReviewSession, start: bytes) -> None:
    """A byte now and then does not hold a connection."""
    with (
        running_server(ReviewServer(lambda: PAGE, desk.save, time_limit=0.1)) as server,
        connect(server) as slow,
    ):
        slow.sendall(start)
        assert is_closed_while_sending(slow), "a slow request was held for seconds"


def is_closed_while_sending(connection: socket.socket) -> bool:
    """Send a byte every 20 ms for at most 5 s; whether the other side closed the connection."""
    connection.settimeout(0.02)
    for _ in range(250):
        try:
            connection.sendall(b"a")
            if connection.recv(1) == b"":
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


def test_a_review_that_ends_early_is_not_saved(server: ReviewServer, desk: ReviewSession) -> None:
    cookie, content = enter(server), json.dumps(FINE.to_json())
    host = f"127.0.0.1:{server.server_port}"
    head = (
        f"POST /review HTTP/1.0\r\nHost: {host}\r\nOrigin: http://{host}\r\nCookie: {cookie}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content) + 1}\r\n\r\n"
    )
    with connect(server) as connection:
        connection.sendall((head + content).encode())
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(12) == b"HTTP/1.0 400"
    assert not desk.saved
