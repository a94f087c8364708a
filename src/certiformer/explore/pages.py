"""The addresses of the server: the page, its files, jobs that stream, downloads and uploads."""

from __future__ import annotations

import contextlib
import gzip
import json
import mimetypes
from collections.abc import AsyncIterator
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from certiformer._version import __version__
from certiformer.errors import BadInput
from certiformer.explore.guard import Guard, TooMuch
from certiformer.explore.jobs import Busy, Crew, Event
from certiformer.explore.limits import UPLOAD_BYTES
from certiformer.explore.requests import read_object
from certiformer.explore.rooms import KEEPING, ROOMS
from certiformer.explore.storage import Storage, zipped


def application(crew: Crew, host: str, port: int, token: str | None, folder: Path | None) -> Guard:
    """The whole server behind its guard."""
    pages = Pages(crew, folder)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await crew.begin()
        try:
            yield
        finally:
            await crew.end()

    routes = [
        Route("/api/about", pages.about),
        Route("/api/jobs/{room}", pages.job, methods=["POST"]),
        Route("/api/runs/{name}", pages.run_folder),
        Route("/api/uploads", pages.new_upload, methods=["POST"]),
        Route("/api/upload/{name}/{file}", pages.upload_file, methods=["POST"]),
        Route("/{path:path}", pages.file),
    ]
    handlers: dict[Any, Any] = {
        BadInput: _bad_input,
        Busy: _busy,
        TooMuch: _too_much,
        HTTPException: _unknown,
        ClientDisconnect: _gone,
        Exception: _mistake,
    }
    return Guard(Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan), host, port, token)


class Pages:
    """What is answered at each address."""

    def __init__(self, crew: Crew, folder: Path | None):
        self.crew, self.folder, self.storage = crew, folder, Storage(crew.folder)
        self.files = _bundle()

    async def file(self, request: Request) -> Response:
        """A file of the page: looked up among those of the bundle, never on the disk."""
        name = request.path_params["path"] or "index.html"
        if name not in self.files:
            raise HTTPException(404)
        kind, plain, packed = self.files[name]
        # Names of assets carry a hash of their content.
        headers = {"cache-control": "no-cache" if name.endswith(".html") else "public, max-age=31536000, immutable"}
        headers["vary"] = "accept-encoding"
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(packed, media_type=kind, headers={**headers, "content-encoding": "gzip"})
        return Response(plain, media_type=kind, headers=headers)

    async def about(self, request: Request) -> Response:
        """What the page has to know of this server."""
        facts = {"version": __version__, "folder": self.folder.name if self.folder else None, "upload": UPLOAD_BYTES}
        return JSONResponse({**facts, "waiting": self.crew.waiting, "workers": len(self.crew.workers)})

    async def job(self, request: Request) -> Response:
        """Read a request, then stream the events of its job, a line each."""
        room = request.path_params["room"]
        if room not in ROOMS:
            raise HTTPException(404)
        asked = import_module(ROOMS[room]).read(read_object(await request.body()))
        job: Event = {"room": room, "request": asked}
        name = None
        if room in KEEPING:
            name, folder = self.storage.new_run()
            job["folder"] = str(folder)
        elif asked.get("run") is not None:
            job["folder"] = str(self.storage.run(asked["run"]))
        elif asked.get("upload") is not None:
            job["folder"] = str(self.storage.upload(asked["upload"]))
        elif self.folder is not None:
            job["folder"] = str(self.folder)
        if self.crew.is_full:
            raise Busy
        return StreamingResponse(self._lines(job, name), media_type="application/x-ndjson")

    async def _lines(self, job: Event, name: str | None) -> AsyncIterator[bytes]:
        events = self.crew.run(job)
        async with contextlib.aclosing(events):
            async for event in events:
                if event["event"] == "done" and name is not None:
                    event["run"] = name
                yield json.dumps(event).encode() + b"\n"

    async def run_folder(self, request: Request) -> Response:
        """A run folder as an archive."""
        folder = self.storage.run(request.path_params["name"])
        content = await anyio.to_thread.run_sync(zipped, folder)
        return Response(content, media_type="application/zip", headers={"cache-control": "no-store"})

    async def new_upload(self, request: Request) -> Response:
        """The name of an empty folder for what was dropped on the page."""
        return JSONResponse({"upload": self.storage.new_upload()})

    async def upload_file(self, request: Request) -> Response:
        """One file, straight to the disk."""
        path = self.storage.upload_file(request.path_params["name"], request.path_params["file"])
        try:
            async with await anyio.open_file(path, "xb") as file:
                async for chunk in request.stream():
                    await file.write(chunk)
        except FileExistsError:
            raise BadInput("this file was dropped already") from None
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return JSONResponse({"bytes": path.stat().st_size})


def _bundle() -> dict[str, tuple[str, bytes, bytes]]:
    """Every file of the page by its address: its type, its content, its content compressed."""
    home = Path(str(files("certiformer.explore") / "bundle"))
    bundle = {}
    for path in sorted(home.rglob("*")):
        if path.is_file():
            content, kind = path.read_bytes(), mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            bundle[path.relative_to(home).as_posix()] = (kind, content, gzip.compress(content, 9, mtime=0))
    return bundle


def _said(status: int, sentence: str) -> Response:
    return JSONResponse({"sentence": sentence}, status)


async def _bad_input(request: Request, problem: Exception) -> Response:
    return _said(400, str(problem)[:2_000])


async def _busy(request: Request, problem: Exception) -> Response:
    return _said(503, "too many jobs are waiting already; try again later")


async def _too_much(request: Request, problem: Exception) -> Response:
    return _said(getattr(problem, "status", 400), str(problem))


async def _unknown(request: Request, problem: Exception) -> Response:
    status = getattr(problem, "status_code", 404)
    return _said(status, "there is nothing at this address" if status == 404 else "this address is not asked like this")


async def _gone(request: Request, problem: Exception) -> Response:
    return _said(400, "the request ended too early")


async def _mistake(request: Request, problem: Exception) -> Response:
    return _said(500, "the server made a mistake; the page can be reloaded")
