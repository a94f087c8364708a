"""A server of `certiformer explore` in a process of its own, asked through real sockets."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Served:
    """A running server, and how it is asked."""

    def __init__(self, process: subprocess.Popen[str], address: str):
        self.process, self.address = process, address
        self.port = int(address.split("#")[0].rstrip("/").rpartition(":")[2])
        self.token = address.partition("#token=")[2]

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """One request on a fresh connection: status, headers, content."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def post(self, path: str, data: Any, **headers: str) -> tuple[int, Any]:
        """A JSON request; the status, and the sentence or the events."""
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        status, _, content = self.ask("POST", path, body, {"content-type": "application/json", **headers})
        if status != 200:
            return status, json.loads(content)["sentence"]
        return status, [json.loads(line) for line in content.splitlines()]

    def job(self, room: str, **request: Any) -> list[dict[str, Any]]:
        """The events of a job that is accepted."""
        status, events = self.post(f"/api/jobs/{room}", request)
        assert status == 200, events
        return events


@contextmanager
def serving(*flags: str) -> Iterator[Served]:
    """A server with these flags at a free port; killed at the end if it does not end by itself."""
    port = [] if "--port" in flags else ["--port", "0"]
    command = [sys.executable, "-m", "certiformer", "explore", "--no-open", "--workers", "1", *port, *flags]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield Served(process, process.stdout.readline().strip())
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
