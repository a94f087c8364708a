"""Files with one thing wrong: the readers of the kernel must refuse each of them, and take it without that one thing.

Every field of every kind of file is bent in turn. What is drawn here is wrong by the pages of `docs/`, whatever the
reader says; a reader that takes it, or that ends in anything but a refusal, is at fault.
"""

from __future__ import annotations

import contextlib
import json
import random
import struct
from collections.abc import Callable

import numpy as np
from _soundness_exact import shapes, written

WRONG = (None, True, "x", -1, 1.5, [], {}, "1")  # never a size, a kind or a part of a configuration
OFTEN = 0.15  # of the trials leave everything right


def refused(work: Callable[[], object], wrong: str) -> str:
    """What is wrong with the answer to a file that has `wrong` in it, or nothing if that is empty."""
    from certiformer.errors import BadInput
    from certiformer.kernel import Refused

    try:
        work()
    except (BadInput, Refused) as error:
        told = str(error)
        return "" if wrong and told else f"what is right was refused: {told}"
    except Exception as error:
        return f"{wrong or 'what is right'} ended in {type(error).__name__}: {error}"[:300]
    return f"{wrong} was read" if wrong else ""


# --- transformers ----------------------------------------------------------------------------------


def full_config(rng: random.Random) -> dict:
    """A configuration that uses every field."""
    attention = {
        "kind": rng.choice(("softmax", "hard", "nearest", "linear", "relu")),
        "heads": [{"count": 2, "key": 1, "value": 2}],
        "bias": True,
        "scale": "unit",
        "mask": "table",
        "score_bias": rng.choice(("table", "toeplitz")),
        "residual": False,
    }
    norm = {"kind": "layer", "place": rng.choice(("pre", "post")), "epsilon": 0.125}
    block = {"attention": attention, "ffn": {"kind": "gelu", "width": 2, "residual": True}, "norm": norm}
    source = rng.choice(
        ({"kind": "continuous", "tokens": 2, "width": 2}, {"kind": "ids", "tokens": 2, "vocabulary": 3})
    )
    code = rng.choice(
        (
            {"kind": "none"},
            {"kind": "table"},
            {"kind": "one-hot", "offset": 1},
            {"kind": "circle", "offset": 1, "period": 4},
            {"kind": "sinusoidal", "offset": 0, "width": 3},
        )
    )
    readout = rng.choice(
        (
            {"kind": "all"},
            {"kind": "mean"},
            {"kind": "sum"},
            {"kind": "token", "token": 1},
            {"kind": "register", "token": 1},
        )
    )
    return {
        "format": "certiformer-model-1",
        "dtype": rng.choice(("float64", "float32", "bfloat16")),
        "input": source,
        "width": 3,
        "registers": 2,
        "code": code,
        "blocks": [block, {"attention": None, "ffn": None, "norm": None}],
        "loops": 2,
        "readout": readout,
        "outputs": 2,
    }


def numbers_for(config: dict) -> dict[str, np.ndarray]:
    return {name: np.ones(shape) for name, shape in shapes(config).items()}


def places(data, path: tuple = ()) -> list[tuple]:
    """The paths of all entries of JSON data."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [found for key, entry in items for found in ((*path, key), *places(entry, (*path, key)))]


def at(data, path: tuple):
    for key in path:
        data = data[key]
    return data


def bend_field(rng: random.Random, config: dict) -> str:
    """One field of a configuration out of what docs/model.md allows; what was done."""
    path = rng.choice(places(config))
    parent, key, old = at(config, path[:-1]), path[-1], at(config, path)
    kind = rng.random()
    if kind < 0.15 and isinstance(parent, dict):
        del parent[key]
        return f"no entry {path}"
    if kind < 0.3 and isinstance(old, dict):
        old["more"] = 1
        return f"one entry too many in {path}"
    if type(old) is int:
        smallest = 0 if key in ("registers", "offset", "token") else 1
        parent[key] = rng.choice((smallest - 1, float(old), str(old), None, True))
    elif type(old) is float:
        parent[key] = rng.choice((0.0, 1.0, -0.125, 0, 1, None, "0.1"))
    elif type(old) is bool:
        parent[key] = rng.choice((int(old), None, "true", []))
    elif type(old) is str:
        parent[key] = rng.choice((old + "x", old.upper(), None, 0, [old]))
    elif isinstance(old, list):
        parent[key] = rng.choice([w for w in WRONG if not (w == [] and key == "blocks")])
    else:
        allowed_none = key in ("attention", "ffn", "norm")
        parent[key] = rng.choice([w for w in WRONG if not (w is None and allowed_none)])
    return f"{path} is {parent[key]!r}"


def bend_sizes(rng: random.Random, config: dict) -> str:
    """Fields that are fine one by one and not together."""
    kind = rng.choice(("loops", "heads", "code", "token", "circle", "wide"))
    if kind == "loops":
        config["loops"] = 1001
    elif kind == "heads":
        config["blocks"][0]["attention"]["heads"] = []
    elif kind == "code":
        config["code"] = {"kind": "one-hot", "offset": 2}
    elif kind == "circle":
        config["code"] = {"kind": "circle", "offset": 2, "period": 3}
    elif kind == "wide":
        config["code"] = {"kind": "sinusoidal", "offset": 1, "width": 3}
    else:
        config["readout"] = {"kind": rng.choice(("token", "register")), "token": 2}
    return f"{kind} that does not fit"


def bend_tensors(rng: random.Random, tensors: dict[str, np.ndarray], config: dict) -> tuple[bytes, str]:
    """The bytes of a weight file with one thing wrong."""
    kind = rng.choice(
        (
            "gone",
            "padded",
            "more",
            "shape",
            "dtype",
            "mask",
            "infinite",
            "nan",
            "short",
            "long",
            "gap",
            "overlap",
            "axes",
            "negative",
            "flag",
            "outside",
            "reversed",
            "count",
            "empty",
            "header",
            "twice",
            "list",
            "fields",
            "text",
        )
    )
    name, dtype = rng.choice(sorted(tensors)), config["dtype"]
    masks = [n for n in tensors if n.endswith(".mask")]
    if kind == "gone":
        del tensors[name]
    elif kind == "more":
        tensors["readout.scale"] = np.ones(2)
    elif kind == "shape":
        tensors[name] = tensors[name].reshape((1, *tensors[name].shape))
    elif kind == "mask":
        tensors[masks[0]][0, 0] = rng.choice((2, 255))
    elif kind in ("infinite", "nan"):
        name = rng.choice([n for n in tensors if n not in masks])
        tensors[name].flat[rng.randrange(tensors[name].size)] = np.inf if kind == "infinite" else np.nan
    raw = written(tensors, dtype)
    size = int.from_bytes(raw[:8], "little")
    header, body = json.loads(raw[8 : 8 + size]), raw[8 + size :]
    entry = header.get(name, next(iter(header.values())))
    start, end = entry["data_offsets"]
    if kind == "dtype":
        other = {"F64": "F32", "F32": "F64", "BF16": "F64", "U8": "F64"}[entry["dtype"]]
        entry["dtype"] = rng.choice((other, "I64", "f64", None, ["F64"]))
        header, body = laid_out(header)
    elif kind == "short":
        body = body[:-1]
    elif kind == "long":
        body += b"\0"
    elif kind == "gap":
        header = {n: {**e, "data_offsets": [x + 8 for x in e["data_offsets"]]} for n, e in header.items()}
        body = bytes(8) + body
    elif kind == "overlap":
        (first, a), (second, b) = rng.sample(sorted(header.items()), 2)
        header[second] = {**b, "data_offsets": a["data_offsets"], "shape": a["shape"], "dtype": a["dtype"]}
        if a == b:
            header[second]["data_offsets"] = [a["data_offsets"][0], a["data_offsets"][1] + 1]
    elif kind == "padded":  # more bytes than the shape calls for
        entry["data_offsets"][1] += 8
        for other in header.values():
            if other is not entry and other["data_offsets"][0] >= end:
                other["data_offsets"] = [x + 8 for x in other["data_offsets"]]
        body = body[:end] + bytes(8) + body[end:]
    elif kind == "axes":
        entry["shape"] = [1] * 9 + entry["shape"]
    elif kind == "negative":
        entry["shape"] = [-n for n in entry["shape"]]
    elif kind == "flag":
        entry["data_offsets"] = [bool(start) if start < 2 else float(start), end]
    elif kind == "outside":
        entry["data_offsets"] = [start + len(body), end + len(body)]
    elif kind == "reversed":
        entry["data_offsets"] = [end, start]
    elif kind == "count":
        entry["shape"] = [*entry["shape"][:-1], entry["shape"][-1] + 1]
    elif kind == "fields":
        entry["more"] = 1
    elif kind == "list":
        header = [header]
    if kind == "empty":
        return raw[: rng.randrange(8)], "no header"
    text = json.dumps(header).encode()
    if kind == "twice":
        text = text[:-1] + b"," + json.dumps({name: header[name]}).encode()[1:]
    if kind == "text":
        text = text.replace(b"[", rng.choice((b"[NaN,", b"[1e999,", b"[Infinity,", b"((")), 1)
    long = len(text) + (len(body) + 1 if kind == "header" else 0)
    return struct.pack("<Q", long) + text + body, f"{kind} in {name}"


def laid_out(header: dict) -> tuple[dict, bytes]:
    """Ranges that follow each other again, with zeros in them."""
    widths, place, result = {"F64": 8, "F32": 4, "BF16": 2, "U8": 1}, 0, {}
    for name, entry in header.items():
        dtype = entry["dtype"] if isinstance(entry["dtype"], str) else "F64"
        size = widths.get(dtype, 8) * int(np.prod(entry["shape"]))
        result[name] = {**entry, "data_offsets": [place, place + size]}
        place += size
    return result, bytes(place)


def transformers(rng: random.Random) -> str:
    """A stored transformer with one thing wrong."""
    from certiformer.kernel.weights import read_model

    config = full_config(rng)
    tensors, kind = numbers_for(config), rng.random()
    if kind < OFTEN:
        if rng.random() < 0.3:  # the largest that is allowed
            config["loops"] = 1000
        return refused(lambda: read_model(json.dumps(config).encode(), written(tensors, config["dtype"])), "")
    if kind < 0.55:
        raw = written(tensors, config["dtype"])
        wrong = bend_sizes(rng, config) if rng.random() < 0.3 else bend_field(rng, config)
        if rng.random() < 0.5:
            with contextlib.suppress(Exception):  # there are no tensors for what is no configuration
                raw = written(numbers_for(config), config["dtype"])
    else:
        raw, wrong = bend_tensors(rng, tensors, config)
    return refused(lambda: read_model(json.dumps(config).encode(), raw), wrong)


# --- formulas --------------------------------------------------------------------------------------

GOOD = [
    ["var", 0],
    ["var", 1],
    ["const", "-7/3"],
    ["const", "pi"],
    ["sin", 0],
    ["add", 1, 2],
    ["pow", 3, 1000],
    ["where", "lt", 0, 1, 2, 3],
    ["where", "le", 4, 5, 6, 6],
    ["max", 4, 5],
    ["neg", 8],
]


NO_CONSTANTS = (
    "2/4",
    "1/0",
    "3/1",
    "01",
    "+1",
    "1.5",
    "1e3",
    "",
    " 1",
    "1/-2",
    "-0",
    "\u0663",
    "1_0",
    "e1",
    1,
    None,
    "9" * 1300,
    "1/" + "7" * 1300,
    str(2**4096),
    f"1/{2**4096}",
    "-",
    "9" * 3000,
)
NO_NODES = (
    ["sin", -1],
    ["add", 0],
    ["sin", 0, 0],
    ["pow", 0, 1001],
    ["pow", 0, -1],
    ["pow", 0, 1.0],
    ["pow", 0],
    ["floor", 0],
    ["var", 2],
    ["var", -1],
    ["var"],
    ["var", True],
    [None],
    ["sin", "0"],
    ["sin", 0.0],
    ["const"],
    ["const", "1", "1"],
    ["neg"],
    ["where", "gt", 0, 0, 0, 0],
    ["where", "lt", 0, 0, 0],
    ["where", 0, 0, 0, 0, 0],
    ["add", 0, -1],
    ["where", "lt", -1, 0, 0, 0],
    ["var", 0, 0],
)


def formulas_read(rng: random.Random) -> str:
    """A stored formula with one thing wrong."""
    from certiformer.kernel.programs import Program

    data = {"inputs": 2, "nodes": [list(node) for node in GOOD], "outputs": [10, 3]}
    if rng.random() < OFTEN:
        return refused(lambda: Program.from_json(data), "")
    place = rng.randrange(2, len(GOOD))
    bends: list[Callable[[], object]] = [
        lambda: data.update(inputs=rng.choice((0, -1, 257, True, 2.0, None, "2", 1))),
        lambda: data.update(outputs=rng.choice(([], [11], [-1], [True], [1.0], None, ["1"], 3))),
        lambda: data.update(more=1),
        lambda: data.pop(rng.choice(("inputs", "nodes", "outputs"))),
        lambda: data.update(
            nodes=rng.choice((None, {}, [1], ["var"], [[]], [["var", 2]], GOOD + [["neg", 0]] * 20_000))
        ),
        lambda: data["nodes"].__setitem__(place, ["const", rng.choice(NO_CONSTANTS)]),
        lambda: data["nodes"].__setitem__(
            place, rng.choice([*NO_NODES, ["sin", place], ["where", "lt", 0, 0, 0, place], ["pow", place, 1]])
        ),
    ]
    rng.choice(bends)()
    return refused(lambda: Program.from_json(data), f"the formula {str(data)[:200]} (node {place})")


# --- numbers, trees, JSON --------------------------------------------------------------------------


def small_readers(rng: random.Random) -> str:
    """Numbers, split trees and JSON texts."""
    from certiformer.kernel import files, programs, rules

    kind = rng.choice(("number", "tree", "json", "deep tree"))
    if kind == "number":
        right = rng.random() < OFTEN
        text = (
            rng.choice(("1", "-2/3", "0.5", "1e-3", "1E+4", "-0.25e9999"))
            if right
            else rng.choice(
                (
                    "",
                    ".5",
                    "1.",
                    "1/0",
                    "1/-2",
                    "1e99999",
                    "0x1",
                    "1_0",
                    "nan",
                    "inf",
                    " 1",
                    "1 ",
                    "1\n",
                    "٣",
                    "1/2/3",
                    "1/2e3",
                    "--1",
                    "9" * 4001,
                    "1e",
                    "+1",
                    "1/02",
                )
            )
        )
        return refused(lambda: programs.exact(text), "" if right else f"the number {text[:20]!r}")
    if kind == "tree":
        good = b"\x00\xff\x01\xff\xff"
        bad = rng.choice(
            (b"", b"\x00", b"\x00\xff", b"\xff\xff", good + b"\xff", good[:-1], b"\x02\xff\xff", b"\xfe\xff\xff")
        )
        right = rng.random() < OFTEN
        return refused(
            lambda: list(rules.subtrees(good if right else bad, 2, 0)), "" if right else f"the tree {list(bad)}"
        )
    if kind == "deep tree":
        depth = rng.choice((60, 61, 61))
        tree = b"\x00" * depth + b"\xff" * (depth + 1)
        return refused(
            lambda: list(rules.subtrees(tree, 1, 0)), "" if depth == 60 else "a tree that cuts an axis 61 times"
        )
    bad = rng.choice(
        (
            b"{",
            b"NaN",
            b"[Infinity]",
            b"[1e999]",
            b'{"a": 1, "a": 1}',
            b"\xff",
            b"",
            b"[" * 100_000,
            b"[1,]",
            b"[-Infinity]",
            b"[" + b"0," * 2_000_001 + b"0]",
            b"[" + b"[]," * 1_100_000 + b"0]",
            b"[" + b"{}," * 1_100_000 + b"0]",
            b"[-1e999]",
            b'{"b": {"a": 1, "a": 2}}',
        )
    )
    right = rng.random() < OFTEN
    return refused(
        lambda: files.parse_json(b'{"a": [1, 2.5, null]}' if right else bad, "x.json"), "" if right else str(bad[:40])
    )


def folders_read(rng: random.Random) -> str:
    """A folder with a link, something that is no file, or more than is read."""
    import os
    import tempfile
    from pathlib import Path

    from certiformer.kernel import files

    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=memory) as temporary:
        folder = Path(temporary)
        name, size = rng.choice((("config.json", 16 << 20), ("model.safetensors", 64 << 20), ("target.json", 64 << 20)))
        path, kind = (
            folder / name,
            rng.choice(("right", "link", "folder", "fifo")),
        )
        if rng.random() < 0.01:  # they take a hundred times as long
            kind = rng.choice(("large", "values", "largest", "total"))
        if kind == "link":
            (folder / "elsewhere").write_bytes(b"{}")
            path.symlink_to(folder / "elsewhere")
        elif kind == "folder":
            path.mkdir()
        elif kind == "fifo":
            os.mkfifo(path)
        elif kind in ("large", "largest"):
            with path.open("wb") as stream:
                stream.truncate(size + (kind == "large"))
        elif kind == "total":
            for other in ("model.safetensors", "leaves.bin", "target.json"):
                with (folder / other).open("wb") as stream:
                    stream.truncate(64 << 20 if other != "target.json" else 1)
        elif kind == "values":
            name = "config.json"
            (folder / name).write_bytes(b"[" + b"0," * 2_000_001 + b"0]")
        else:
            path.write_bytes(b"{}")
        return refused(lambda: files.read_files(folder), "" if kind in ("right", "largest") else f"{name} as a {kind}")


READERS: dict[str, Callable[[random.Random], str]] = {
    "read-models": transformers,
    "read-formulas": formulas_read,
    "read-numbers": small_readers,
    "read-folders": folders_read,
}
