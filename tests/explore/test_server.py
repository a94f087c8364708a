"""The local server through real sockets: pages, jobs, what is refused, and what happens when somebody goes away."""

from __future__ import annotations

import io
import json
import re
import socket
import zipfile

import pytest

pytest.importorskip("uvicorn")

from explore.served import serving

SQUARE = {"formula": "x1**2", "box": "[0,1]", "epsilon": "0.1", "method": "ridge", "seconds": 0}


@pytest.fixture(scope="module")
def server():
    with serving() as served:
        yield served


def test_the_address_is_the_first_line_and_answers(server):
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", server.address)
    status, headers, page = server.ask("GET", "/")
    assert status == 200 and b"certiformer explore" in page
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "set-cookie" not in headers and "server" not in headers


def test_every_file_of_the_page_is_there_and_asks_for_nothing_elsewhere(server):
    names = re.findall(r'(?:src|href)="\./([^"]+)"', server.ask("GET", "/")[2].decode())
    assert names
    for name in names:
        status, headers, content = server.ask("GET", f"/{name}", headers={"accept-encoding": "gzip"})
        assert status == 200 and headers["content-encoding"] == "gzip" and "immutable" in headers["cache-control"]
    assert server.ask("GET", "/assets/../../__init__.py")[0] == 404
    assert server.ask("GET", "/..%2f..%2f__init__.py")[0] == 404


def test_a_build_is_shown_live_and_its_run_can_be_fetched_and_broken(server):
    events = server.job("approximate", **SQUARE)
    kinds = [event["event"] for event in events]
    assert kinds[-1] == "done" and "planned" in kinds and "proof" in kinds and "lower" in kinds
    last = events[-1]
    assert last["word"] == "certified" and float(last["report"]["upper"]) <= 0.1
    status, _, content = server.ask("GET", f"/api/runs/{last['run']}")
    names = zipfile.ZipFile(io.BytesIO(content)).namelist()
    assert status == 200 and "certiformer-run/certificate.json" in names
    weight = max(last["weights"], key=lambda w: "ffn" in w["tensor"])
    place = {"run": last["run"], "tensor": weight["tensor"], "at": weight["at"]}
    assert server.job("break", **place, by=0)[-1]["accepted"]
    broken = server.job("break", **place, by=5)[-1]
    assert not broken["accepted"] and broken["witness"]["refutes"]


def test_what_cannot_be_done_is_one_sentence(server):
    status, sentence = server.post("/api/jobs/approximate", {**SQUARE, "formula": "__import__('os')"})
    assert status == 200 and sentence[-1]["event"] == "refused" and "formula" in sentence[-1]["sentence"]
    assert server.post("/api/jobs/nowhere", {}) == (404, "there is nothing at this address")
    assert server.post("/api/jobs/approximate", b"{")[0] == 400
    assert server.post("/api/jobs/approximate", b" " * 70_000)[0] == 413
    assert server.ask("GET", "/api/jobs/approximate")[0] == 404
    assert server.ask("GET", f"/api/runs/{'0' * 32}")[0] == 400
    assert server.ask("GET", "/", headers={"host": "evil.example"})[0] == 421


def test_a_job_ends_when_its_reader_goes_away(server):
    """The long job would hold the only worker for a minute; the next one is answered because it was killed."""
    body = json.dumps({**SQUARE, "formula": "sin(9*x1)*cos(x2*x3)", "box": "[0,9]^3", "epsilon": "1e-4"}).encode()
    head = f"POST /api/jobs/approximate HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        received = b""
        while b"begun" not in received:
            received += connection.recv(4096)
    assert server.job("approximate", **SQUARE)[-1]["event"] == "done"


@pytest.mark.slow
def test_beyond_this_machine_the_address_carries_a_token():
    with serving("--host", "0.0.0.0") as served:
        assert served.token
        assert served.ask("GET", "/")[0] == 200
        assert served.ask("GET", "/api/about")[0] == 401
        assert served.ask("GET", "/api/about", headers={"certiformer-token": served.token})[0] == 200
