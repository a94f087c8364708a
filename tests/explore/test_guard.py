"""Who may ask the local server: every rule is broken once, and kept once."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("starlette")

from certiformer.explore.guard import TOKEN, Guard


async def nothing(scope, receive, send):
    raise AssertionError("not reached")


LOCAL = Guard(nothing, "127.0.0.1", 8642, None)
OPEN = Guard(nothing, "0.0.0.0", 8642, "secret")
OURS = {"host": "127.0.0.1:8642"}
JSON = {**OURS, "content-type": "application/json"}


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "/", OURS),
        ("GET", "/", {"host": "localhost:8642"}),
        ("GET", "/api/about", {**OURS, "origin": "http://127.0.0.1:8642", "sec-fetch-site": "same-origin"}),
        ("POST", "/api/jobs/approximate", JSON),
        ("POST", "/api/upload/x/config.json", {**OURS, "content-type": "application/octet-stream"}),
        ("GET", "/", {**OURS, "sec-fetch-site": "cross-site"}),  # a link on another page may lead here
    ],
)
def test_our_own_page_is_answered(method, path, headers):
    assert LOCAL.refusal(method, path, headers) is None


@pytest.mark.parametrize(
    ("status", "method", "path", "headers"),
    [
        (421, "GET", "/", {}),
        (421, "GET", "/", {"host": "evil.example:8642"}),
        (421, "GET", "/", {"host": "127.0.0.1:8643"}),
        (421, "GET", "/", {"host": "127.0.0.1"}),
        (421, "GET", "/", {"host": "127.0.0.1.evil.example:8642"}),
        (421, "GET", "/", {"host": "10.0.0.7:8642"}),
        (405, "PUT", "/api/about", OURS),
        (403, "GET", "/api/about", {**OURS, "origin": "http://evil.example"}),
        (403, "GET", "/api/about", {**OURS, "origin": "null"}),
        (403, "GET", "/api/about", {**OURS, "origin": "http://localhost:8642"}),
        (403, "GET", "/api/about", {**OURS, "sec-fetch-site": "cross-site"}),
        (403, "GET", "/api/about", {**OURS, "sec-fetch-site": "same-site"}),
        (415, "POST", "/api/jobs/approximate", OURS),
        (415, "POST", "/api/jobs/approximate", {**OURS, "content-type": "text/plain"}),
    ],
)
def test_everybody_else_is_refused(status, method, path, headers):
    refusal = LOCAL.refusal(method, path, headers)
    assert refusal is not None and refusal[0] == status


def test_beyond_this_machine_a_token_is_needed_for_all_but_the_page():
    far = {"host": "10.0.0.7:8642"}
    assert OPEN.refusal("GET", "/", far) is None
    assert OPEN.refusal("GET", "/api/about", {**far, TOKEN: "secret"}) is None
    for wrong in ({}, {TOKEN: ""}, {TOKEN: "secre"}, {TOKEN: "sécret"}):
        assert OPEN.refusal("GET", "/api/about", {**far, **wrong})[0] == 401
    assert OPEN.refusal("GET", "/", {"host": "evil.example:8642"})[0] == 421  # no name of somebody else's


def test_a_refusal_is_one_sentence_with_the_same_headers():
    import asyncio

    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"a"), (b"host", b"127.0.0.1:8642")]}
    asyncio.run(LOCAL(scope, None, send))
    assert sent[0]["status"] == 421
    assert b"content-security-policy" in dict(sent[0]["headers"])
    assert json.loads(sent[1]["body"])["sentence"] == "this server answers at its own address only"
