"""Many users at once, and ten thousand requests that nobody should send."""

from __future__ import annotations

import importlib.util
import json
import random
import re
import socket
import sys
from pathlib import Path

import pytest

from explore.served import serving

pytest.importorskip("uvicorn")
SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "explore.py"
REQUESTS = 10_000
GOOD = {"formula": "x1", "box": "[0,1]", "epsilon": "0.1", "method": "ridge", "seconds": 0}


@pytest.mark.slow
def test_no_job_is_lost_and_whoever_waits_is_told(monkeypatch):
    specification = importlib.util.spec_from_file_location("explore_load", SCRIPT)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "explore_load", module)
    specification.loader.exec_module(module)
    load = module.measure(6, workers=1)
    assert load.done == 6 and load.queued >= 4 and load.pages > 0


def mutated(generator: random.Random) -> bytes:
    """A request of a page with something wrong in it: its line, its headers, its body, its length, its bytes."""
    method = generator.choice(["GET", "POST", "POST", "POST", "PUT", "GE\x00T", "OPTIONS", ""])
    path = generator.choice(
        ["/", "/api/about", "/api/jobs/approximate", "/api/jobs/break", "/api/jobs/audit", "/api/runs/" + "a" * 32]
        + [
            "/..%2f..%2fetc/passwd",
            "/api/upload/x/..%2f..%2fx",
            "/" + "a" * generator.choice([10, 30_000]),
            "/\x7f%00%ff",
        ]
    )
    junk = [
        "\x00",
        "\u202e",
        "x" * 5_000,
        "__import__('os')",
        "../../etc/passwd",
        "[" * 3_000,
        1e308,
        -1,
        None,
        {},
        [[]],
    ]
    entries = {name: generator.choice([value, *junk]) for name, value in GOOD.items() if generator.random() < 0.9}
    # Whatever is wrong, never a whole request that would begin a job.
    entries["unknown"] = generator.choice(junk)
    body = json.dumps(entries).encode()
    if generator.random() < 0.3:
        body = generator.randbytes(generator.randrange(200))
    if generator.random() < 0.05:
        body = b"[" * 70_000
    length = generator.choice([len(body), len(body), 0, "x", -5, 10**12])
    host = generator.choice(["127.0.0.1:PORT", "127.0.0.1:PORT", "evil.example", "", "127.0.0.1:PORT\r\nHost: b"])
    kind = generator.choice(["application/json", "text/plain", "application/octet-stream", "\x01"])
    origin = generator.choice(["", "Origin: http://evil.example\r\n", "Origin: null\r\n"])
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\n{origin}Content-Length: {length}\r\n\r\n"
    )
    request = head.encode("utf-8", "surrogatepass") + body
    if generator.random() < 0.2:
        place = generator.randrange(max(len(request), 1))
        request = request[:place] + generator.randbytes(3) + request[place + 3 :]
    return request


@pytest.mark.slow
def test_ten_thousand_broken_requests_are_answered_with_a_sentence_and_break_nothing():
    generator = random.Random(0)
    sentences = 0
    with serving() as served:
        for _ in range(REQUESTS):
            request = mutated(generator).replace(b"PORT", str(served.port).encode())
            with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
                connection.settimeout(20)
                try:
                    connection.sendall(request)
                    connection.shutdown(socket.SHUT_WR)
                    answer = b""
                    while chunk := connection.recv(65_536):
                        answer += chunk
                except OSError:
                    continue  # closed at once, which is an answer, too
            head, _, content = answer.partition(b"\r\n\r\n")
            told = re.search(rb"(?i)content-length: *(\d+)", head)
            content = content[: int(told[1])] if told else content  # what follows answers what was left of the body
            status = int(head.split()[1]) if head else 400
            assert status != 500, request
            if status >= 400 and content.startswith(b"{"):
                assert set(json.loads(content)) == {"sentence"}
                assert 0 < len(json.loads(content)["sentence"]) < 2_100
                sentences += 1
        assert sentences > REQUESTS / 4
        assert served.ask("GET", "/")[0] == 200
        assert served.job("approximate", **GOOD)[-1]["word"] == "certified"
