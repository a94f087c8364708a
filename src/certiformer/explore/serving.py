"""`explore`: bind a socket, print the address, serve until interrupted."""

from __future__ import annotations

import errno
import ipaddress
import os
import secrets
import socket
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path

from certiformer.errors import BadInput, MissingExtra

USUAL_PORT = 8642
LOCAL = ("127.0.0.1", "localhost", "::1")


def explore(
    directory: str | Path | None = None,
    *,
    port: int | None = None,
    host: str = "127.0.0.1",
    workers: int | None = None,
    no_open: bool = False,
    say: Callable[[str], None] = print,
) -> None:
    """Serve the page of `certiformer explore` until it is interrupted.

    **Arguments:**

    - `directory`: a checkpoint, a run folder or the folder of a study to look at; read, never changed.
    - `port`: of the address (default: 8642, or a free one where that is taken).
    - `host`: the address to listen at; any but this machine's own needs the token that is printed.
    - `workers`: how many jobs run at once (default: one for each core).
    - `no_open`: do not open the browser.
    - `say`: is given the lines to print, the address first.

    >>> import certiformer
    >>> certiformer.explore(port=99999, no_open=True)
    Traceback (most recent call last):
    certiformer.errors.BadInput: port is a number from 0 to 65535, not 99999
    """
    if port is not None and not 0 <= port <= 65535:
        raise BadInput(f"--port is a number from 0 to 65535, not {port}")
    if workers is not None and not 1 <= workers <= 256:
        raise BadInput(f"--workers is a number from 1 to 256, not {workers}")
    folder = None if directory is None else Path(directory).resolve()
    if folder is not None and not folder.exists():
        raise BadInput(f"there is no {str(directory)!r}")
    try:
        import starlette  # noqa: F401
        import uvicorn
    except ImportError:
        raise MissingExtra("explore needs starlette and uvicorn: pip install 'certiformer[explore]'") from None
    listener = _bound(host, port)
    number = listener.getsockname()[1]
    token = None if host in LOCAL else secrets.token_urlsafe(24)
    address = f"http://{_in_address(host)}:{number}/" + (f"#token={token}" if token else "")
    say(address)
    sys.stdout.flush()
    if token:
        say("Whoever has this address can start jobs on this machine; it is printed only here.")
    if not no_open:
        webbrowser.open(address)

    from certiformer.explore.jobs import Crew
    from certiformer.explore.pages import application

    crew = Crew(workers or os.cpu_count() or 1)
    config = uvicorn.Config(
        application(crew, host, number, token, folder),
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=16_384,
        ws="none",
    )
    uvicorn.Server(config).run(sockets=[listener])


def _bound(host: str, port: int | None) -> socket.socket:
    """A listening socket; where nobody asked for the port, a free one will do."""
    try:
        return _listener(host, USUAL_PORT if port is None else port)
    except OSError as problem:
        if port is None and problem.errno == errno.EADDRINUSE:
            return _listener(host, 0)
        if problem.errno == errno.EADDRINUSE:
            raise BadInput(f"--port {port} is in use; leave it out, and a free one is taken") from None
        raise BadInput(f"--host {host} cannot be listened at: {problem.strerror or problem}") from None


def _listener(host: str, port: int) -> socket.socket:
    kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listener = socket.socket(kind, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(512)
    except OSError:
        listener.close()
        raise
    return listener


def _in_address(host: str) -> str:
    """The host as an address writes it; one that means every interface is reached by the name of this machine."""
    try:
        known = ipaddress.ip_address(host)
    except ValueError:
        return host
    if known.is_unspecified:
        return socket.gethostname()
    return f"[{host}]" if known.version == 6 else host
