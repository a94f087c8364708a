"""A live page in its two parts: what it shows by itself, and the data and the script that answer the pointer."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any

_LIVE = re.compile(
    r'<script type="application/json" id="live-data">([^<]*)</script>\n<script>(.*?)</script>\n', re.DOTALL
)


def without_script(page: str) -> str:
    """The page as it is read without a script."""
    assert len(_LIVE.findall(page)) == 1
    return _LIVE.sub("", page)


def live_data(page: str) -> dict[str, Any]:
    """The data of the script, which is the one that the policy names."""
    ((text, script),) = _LIVE.findall(page)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'\"" in page and "default-src 'none'" in page
    assert re.search(r"https?://(?!www\.w3\.org/)", script) is None and "eval(" not in script
    return json.loads(text)
