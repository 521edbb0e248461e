"""A local HTTP server for one review page.

Only the browser that opened the printed link may talk to it: the token of the link works once and
becomes a cookie. Other host names (DNS rebinding), other sites (forged requests) and other paths
are refused.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from nodenova.errors import NodenovaError
from nodenova.review.review_file import Review

MAX_BYTES = 1_000_000  # of a review
MAX_THREADS = 16
TIMEOUT = 10.0  # seconds for a slow or silent browser
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
    """

    daemon_threads = True

    def __init__(
        self,
        page: Callable[[], str],
        save: Callable[[Review], None],
        port: int = 0,
        undo: Callable[[Review], None] | None = None,
    ) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.page, self.save, self.undo = page, save, undo
        self.token: str | None = secrets.token_urlsafe(32)
        self.cookie = secrets.token_urlsafe(32)
        self.names = {f"{host}:{self.server_port}" for host in ("127.0.0.1", "localhost")}
        self.url = f"http://127.0.0.1:{self.server_port}/?token={self.token}"
        self.lock = threading.Lock()  # one page is made, one review is saved at a time
        self._free = threading.BoundedSemaphore(MAX_THREADS)

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
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a browser that went away."""


class _RefusedError(Exception):
    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


class _Handler(BaseHTTPRequestHandler):
    server: ReviewServer
    timeout = TIMEOUT
    server_version, sys_version = "nodenova", ""

    def do_GET(self) -> None:
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
        try:
            document = json.loads(content)
        except (ValueError, RecursionError):
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
