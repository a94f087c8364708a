"""What stands before every request: host, origin, token, sizes and time; and what is said with every answer.

*Host and origin.* A page of somebody else can send requests to this machine, and a name of somebody else can be made to
mean this machine. Hence the host must be one that this server was started at, or a plain number where it listens
everywhere; and a request that says where it comes from must come from this very page.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import socket
from collections.abc import Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from certiformer.explore.limits import BODY_BYTES, BODY_SECONDS, UPLOAD_BYTES, UPLOAD_SECONDS
from certiformer.explore.serving import LOCAL

TOKEN = "certiformer-token"
UPLOADS = "/api/upload/"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data: blob:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SAID = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


class Guard:
    """The ASGI application `inner`, reached only by requests of our own page."""

    def __init__(self, inner: ASGIApp, host: str, port: int, token: str | None):
        self.inner, self.port, self.token = inner, port, token
        self.names = {*LOCAL, host, socket.gethostname()} if _everywhere(host) else {*LOCAL, host}
        self.numbers = _everywhere(host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return
        headers = _headers(scope)
        refusal = self.refusal(scope["method"], scope["path"], headers)
        if refusal is not None:
            await _say(send, *refusal)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *((n.encode(), v.encode()) for n, v in SAID.items())]
            await send(message)

        upload = scope["path"].startswith(UPLOADS)
        bounded = _Bounded(receive, UPLOAD_BYTES if upload else BODY_BYTES, UPLOAD_SECONDS if upload else BODY_SECONDS)
        await self.inner(scope, bounded, with_headers)

    def refusal(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str] | None:
        """Why a request is not answered: the status and a sentence; None for one that is."""
        if not self._is_ours(headers.get("host", "")):
            return 421, "this server answers at its own address only"
        if method not in ("GET", "HEAD", "POST"):
            return 405, "this server answers GET and POST only"
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{headers['host']}":
            return 403, "a page of another address may not ask this server"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and path != "/":
            return 403, "a page of another address may not ask this server"
        if not path.startswith("/api/"):
            return None
        if self.token is not None and not hmac.compare_digest(headers.get(TOKEN, "").encode(), self.token.encode()):
            return 401, "this needs the token of the address that was printed when the server began"
        if method == "POST":
            kind = "application/octet-stream" if path.startswith(UPLOADS) else "application/json"
            if headers.get("content-type", "").partition(";")[0].strip() != kind:
                return 415, f"what is sent here is {kind}"
        return None

    def _is_ours(self, host: str) -> bool:
        name, _, port = host.rpartition(":")
        name = name.removeprefix("[").removesuffix("]")
        return port == str(self.port) and (name in self.names or (self.numbers and _is_number(name)))


class _Bounded:
    """What is received, up to so many bytes and seconds."""

    def __init__(self, receive: Receive, size: int, seconds: float):
        self.receive, self.left, self.seconds = receive, size, seconds
        self.until: float | None = None
        self.complete = False

    async def __call__(self) -> Message:
        if self.complete:  # from here on only the end of the connection is waited for
            return await self.receive()
        clock = asyncio.get_running_loop().time
        self.until = self.until or clock() + self.seconds
        try:
            message = await asyncio.wait_for(self.receive(), max(self.until - clock(), 0.01))
        except TimeoutError:
            raise TooMuch(408, f"a request has to arrive within {self.seconds:g} seconds") from None
        self.left -= len(message.get("body", b""))
        if self.left < 0:
            raise TooMuch(413, "this is more than a request may hold")
        self.complete = not message.get("more_body", False)
        return message


class TooMuch(Exception):
    """A request that is too large or too slow: its status and a sentence."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status = status


def _headers(scope: Scope) -> dict[str, str]:
    """The headers by name; two of one name count as their last, and two hosts as none."""
    pairs = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
    headers = dict(pairs)
    if sum(name == "host" for name, _ in pairs) != 1:
        headers["host"] = ""
    return headers


async def _say(send: Send, status: int, sentence: str) -> None:
    body = json.dumps({"sentence": sentence}).encode()
    kind = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    said: list[tuple[bytes, bytes]] = [(name.encode(), value.encode()) for name, value in SAID.items()]
    await send({"type": "http.response.start", "status": status, "headers": [*kind, (b"connection", b"close"), *said]})
    await send({"type": "http.response.body", "body": body})


def _everywhere(host: str) -> bool:
    return _is_number(host) and ipaddress.ip_address(host).is_unspecified


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
