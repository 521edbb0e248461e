"""A local HTTP server for one review page.

Only the browser that opened the printed link may talk to it: the token of the link works once and
becomes a cookie. Other host names (DNS rebinding), other sites (forged requests) and other paths
are refused. A request that does not arrive within the time limit is dropped, and when all
connections are taken, the oldest one that is still silent gives way to a new one.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from nodenova.errors import NodenovaError, StorageError
from nodenova.files.documents import parse_json
from nodenova.review.review_file import Review

MAX_BYTES = 8_000_000  # of a review: decisions about selections name each node
MAX_CONNECTIONS = 16  # open at a time, each with a thread
TIME_LIMIT = 10.0  # seconds in which a whole request arrives, and in which an answer is taken
CLOSING = 1.0  # seconds in which the thread of a closed connection ends
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class ReviewServer(ThreadingHTTPServer):
    """Serves one review page; a context manager.

    `url` is the link to open; `serve_forever` answers until Ctrl-C or `shutdown`. `page` returns
    the page as it is now, `save` stores a review, and `undo` takes back the last decision if the
    empty review that it gets is of the run as it is. Their `NodenovaError` is shown to the reader.
    A whole request arrives within `time_limit` seconds, or is dropped.
    """

    daemon_threads = True
    request_queue_size = 128  # a burst of connections waits here, not for a second try

    def __init__(
        self,
        page: Callable[[], str],
        save: Callable[[Review], None],
        port: int = 0,
        undo: Callable[[Review], None] | None = None,
        *,
        time_limit: float = TIME_LIMIT,
        max_connections: int = MAX_CONNECTIONS,
    ) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.page, self.save, self.undo = page, save, undo
        self.token: str | None = secrets.token_urlsafe(32)
        self.cookie = secrets.token_urlsafe(32)
        self.names = {f"{host}:{self.server_port}" for host in ("127.0.0.1", "localhost")}
        self.url = f"http://127.0.0.1:{self.server_port}/?token={self.token}"
        self.lock = threading.Lock()  # one page is made, one review is saved at a time
        self.time_limit = time_limit
        self._free = threading.BoundedSemaphore(max_connections)
        # Connections whose request has not arrived yet, and since when; the oldest first.
        self._silent: dict[socket.socket, float] = {}

    def use_token(self, token: str) -> bool:
        """Whether this is the token, which works once."""
        with self.lock:
            right = self.token is not None and hmac.compare_digest(
                self.token.encode(), token.encode()
            )
            if right:
                self.token = None
            return right

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False) or self._free_silent():
            self._silent[request] = time.monotonic()
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.mark_read(request)
            self._free.release()

    def service_actions(self) -> None:
        """Drop requests that took too long; called by `serve_forever` between two requests."""
        now = time.monotonic()
        for request, since in list(self._silent.items()):
            if now - since > self.time_limit:
                self._close(request)

    def mark_read(self, request: socket.socket) -> None:
        """Note that a request has arrived: its connection is not closed for another one."""
        self._silent.pop(request, None)

    def _free_silent(self) -> bool:
        """Close the oldest silent connection; whether its place is free now."""
        oldest = next(iter(list(self._silent)), None)
        if oldest is None:
            return False
        self._close(oldest)
        return self._free.acquire(timeout=CLOSING)

    def _close(self, request: socket.socket) -> None:
        self.mark_read(request)
        with suppress(OSError):  # the browser, or its thread, was faster
            request.shutdown(socket.SHUT_RDWR)  # its thread reads the end, and ends

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a browser that went away."""


class _RefusedError(Exception):
    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


class _Handler(BaseHTTPRequestHandler):
    server: ReviewServer
    server_version, sys_version = "nodenova", ""

    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(self.server.time_limit)  # of each read, and of all writing

    def do_GET(self) -> None:
        self.server.mark_read(self.connection)
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def _answer(self, work: Callable[[], None]) -> None:
        try:
            if self.headers.get_all("Host", []) not in [[name] for name in self.server.names]:
                raise _RefusedError(
                    HTTPStatus.MISDIRECTED_REQUEST, "this server answers only to 127.0.0.1"
                )
            work()
        except _RefusedError as refused:
            self._send(refused.status, refused.why + "\n")
        except NodenovaError as error:
            self._send(HTTPStatus.UNPROCESSABLE_ENTITY, f"{error}\n")
        except OSError as error:  # a full disk, a folder that is gone
            self._send(
                HTTPStatus.INTERNAL_SERVER_ERROR,
                f"{error.filename or 'writing'}: {error.strerror or error}\n",
            )
        except Exception as error:  # a bug: the reader must see that nothing was saved
            self._send(
                HTTPStatus.INTERNAL_SERVER_ERROR, f"not saved, {type(error).__name__}: {error}\n"
            )

    def _get(self) -> None:
        parts = urlsplit(self.path)
        if parts.path != "/":
            raise _RefusedError(HTTPStatus.NOT_FOUND, "only the page is here")
        tokens = parse_qs(parts.query).get("token", [])
        if tokens:
            if not self._known() and not self.server.use_token(tokens[0]):
                raise _RefusedError(
                    HTTPStatus.FORBIDDEN,
                    "this link was used already or is not the one that was printed",
                )
            cookie = (
                f"{self._cookie_name()}={self.server.cookie}; HttpOnly; SameSite=Strict; Path=/"
            )
            self._send(HTTPStatus.SEE_OTHER, "", Location="/", Set_Cookie=cookie)
            return
        self._need_cookie()
        with self.server.lock:
            content = self.server.page()
        self._send(HTTPStatus.OK, content, Content_Type="text/html; charset=utf-8")

    def _post(self) -> None:
        if self.path not in ("/review", "/undo"):
            raise _RefusedError(HTTPStatus.NOT_FOUND, "reviews go to /review")
        self._need_cookie()
        if self.headers.get_all("Origin", []) != [f"http://{self.headers['Host']}"]:
            raise _RefusedError(
                HTTPStatus.FORBIDDEN, "a review comes from the page itself, not from another site"
            )
        if self.headers.get_content_type() != "application/json":
            raise _RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a review is application/json")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or "Transfer-Encoding" in self.headers:
            raise _RefusedError(HTTPStatus.LENGTH_REQUIRED, "a review needs a Content-Length")
        if len(length) > 9 or int(length) > MAX_BYTES:
            raise _RefusedError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a review has at most {MAX_BYTES:,} bytes"
            )
        content = self.rfile.read(int(length))
        self.server.mark_read(self.connection)
        if len(content) < int(length):
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "the review ended before its last byte")
        try:
            document = parse_json(content, "the review")
        except StorageError:
            raise _RefusedError(
                HTTPStatus.BAD_REQUEST, "the review is not readable as JSON"
            ) from None
        review = Review.from_json(document)
        with self.server.lock:
            if self.path == "/review":
                self.server.save(review)
            elif self.server.undo is None:
                raise _RefusedError(HTTPStatus.NOT_FOUND, "nothing can be taken back here")
            else:
                self.server.undo(review)
            self.server.page()  # made before the answer, so that the reader does not wait for it
        self._send(HTTPStatus.OK, "saved\n")

    def _cookie_name(self) -> str:
        # Browsers share cookies between the ports of a machine.
        return f"nodenova-{self.server.server_port}"

    def _known(self) -> bool:
        cookies = [
            part.strip() for line in self.headers.get_all("Cookie", []) for part in line.split(";")
        ]
        right = f"{self._cookie_name()}={self.server.cookie}"
        return any(hmac.compare_digest(part.encode(), right.encode()) for part in cookies)

    def _need_cookie(self) -> None:
        if not self._known():
            raise _RefusedError(HTTPStatus.FORBIDDEN, "open the link that nodenova review printed")

    def _send(self, status: HTTPStatus, content: str, **headers: str) -> None:
        body = content.encode()
        self.send_response(status)
        own = {"Content-Type": "text/plain; charset=utf-8"} | {
            k.replace("_", "-"): v for k, v in headers.items()
        }
        for name, value in {**HEADERS, **own, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Print nothing."""
