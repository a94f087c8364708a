"""Faults planted in the code that decides, each of which the campaign must expose.

Faults are drawn mechanically from the syntax trees of the deciding code by a seed. Each runs in a process of its own,
forked before anything of certiformer is loaded, with one module replaced. It is *exposed* when a false forgery is
accepted, a value lies outside of a form, an honest folder is refused, or the checker crashes. Only what enters the
changed function is tried, what was refused there first. What survives is listed; `EQUIVALENT` names those that change
nothing, with the reason.
"""

from __future__ import annotations

import ast
import base64
import copy
import importlib.abc
import importlib.util
import json
import os
import random
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _soundness_equivalents import EQUIVALENT
from _soundness_stated import overstated

# Found without loading it: what a fault changes must not be there yet.
PACKAGE = Path(str(importlib.util.find_spec("certiformer").origin)).parent
SOURCES = ("kernel/**/*.py", "axioms/**/*.py")
FORGERIES, OVERSTATED, HONEST = 20, 40, 10  # of each kind, that every fault may have to face
FORMS, TOGETHER = 12, 30  # so many times so many trials of forms
FOLLOWED = 2  # of each kind, whose calls are followed; the others are taken to enter the same functions
SECONDS = 40.0  # of a processor, for one fault

KINDS = ("dropped case", "flipped inequality", "missing pad", "off by one", "unchecked field", "swapped argument")


@dataclass(frozen=True)
class Fault:
    """The `place`-th change of its kind in a file."""

    file: str
    function: str
    line: int
    kind: str
    place: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function or 'the module'}, {self.kind}: {self.what}"

    @property
    def name(self) -> tuple[str, str, str, str]:
        """What it is matched by: neither a line nor a folder, so that code may move."""
        return Path(self.file).name, self.function, self.kind, self.what


class Changer(ast.NodeTransformer):
    """Finds every change of one kind; makes the one whose number is `wanted`."""

    def __init__(self, kind: str, wanted: int = -1):
        self.kind, self.wanted, self.count = kind, wanted, 0
        self.functions: list[str] = []
        self.classes: list[str] = []
        self.found: list[tuple[str, int, str]] = []
        self.statement, self.seen = "", Counter[tuple[str, str]]()

    def visit(self, node: ast.AST) -> Any:
        if not isinstance(node, ast.stmt):
            return super().visit(node)
        outside, self.statement, self.seen = (
            (self.statement, self.seen),
            ast.unparse(node).splitlines()[0][:70],
            Counter(),
        )
        result = super().visit(node)
        self.statement, self.seen = outside
        return result

    def offer(self, node: ast.AST, changed: Callable[[], ast.AST | None]) -> ast.AST | None:
        """Notes a possible change; makes it if it is the wanted one."""
        self.count += 1
        text = ast.unparse(node).splitlines()[0][:70]
        if text[:40] != self.statement[:40]:
            text = f"{text} in {self.statement}"
        function = self.functions[-1] if self.functions else ""
        self.seen[function, text] += 1
        if self.seen[function, text] > 1:
            text = f"{text}, no. {self.seen[function, text]}"
        self.found.append((function, getattr(node, "lineno", 0), text))
        if self.count - 1 == self.wanted:
            result = changed()
            return None if result is None else ast.copy_location(result, node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.functions.append(".".join([*self.classes, node.name]))
        node.body = [part for statement in node.body for part in self.statements(statement)]
        self.functions.pop()
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.classes.append(node.name)
        node.body = [part for statement in node.body for part in self.statements(statement)]
        self.classes.pop()
        return node

    def statements(self, statement: ast.stmt) -> list[ast.stmt]:
        found = self.visit(statement)
        return [] if found is None else found if isinstance(found, list) else [found]

    def visit_Raise(self, node: ast.Raise) -> ast.AST | None:
        if self.kind == "unchecked field" and self.functions:
            return self.offer(node, lambda: ast.Pass())
        return node  # what a refusal says is not what it decides

    def visit_For(self, node: ast.For) -> ast.AST | None:
        if self.kind == "dropped case" and self.functions:
            changed = copy.deepcopy(node)

            def drop() -> ast.AST:
                changed.iter = self.rest_of(changed.iter)
                return changed

            text = ast.For(node.target, node.iter, [ast.Pass()], [])
            ast.copy_location(text, node)
            result = self.offer(text, drop)
            if result is not text:
                return result
        return self.generic_visit(node)

    def rest_of(self, items: ast.expr) -> ast.expr:
        """The items without the first."""
        listed = ast.Call(ast.Name("list", ast.Load()), [items], [])
        return ast.Subscript(listed, ast.Slice(ast.Constant(1), None, None), ast.Load())

    def comprehension(self, node) -> ast.AST | None:
        words = isinstance(getattr(node, "elt", None), ast.JoinedStr)  # a list of words is for people
        if self.kind == "dropped case" and self.functions and not words:

            def drop() -> ast.AST:
                changed = copy.deepcopy(node)
                changed.generators[0].iter = self.rest_of(changed.generators[0].iter)
                return changed

            result = self.offer(node, drop)
            if result is not node:
                return result
        return self.generic_visit(node)

    visit_ListComp = visit_GeneratorExp = visit_SetComp = visit_DictComp = comprehension

    def visit_Compare(self, node: ast.Compare) -> ast.AST | None:
        flips = {
            ast.Lt: ast.Gt,
            ast.Gt: ast.Lt,
            ast.LtE: ast.GtE,
            ast.GtE: ast.LtE,
            ast.Eq: ast.NotEq,
            ast.NotEq: ast.Eq,
        }
        near = {ast.Lt: ast.LtE, ast.Gt: ast.GtE, ast.LtE: ast.Lt, ast.GtE: ast.Gt}
        table = flips if self.kind == "flipped inequality" else near if self.kind == "off by one" else {}
        if type(node.ops[0]) in table and self.functions:

            def flip() -> ast.AST:
                changed = copy.deepcopy(node)
                changed.ops[0] = table[type(changed.ops[0])]()
                return changed

            result = self.offer(node, flip)
            if result is not node:
                return result
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST | None:
        function = node.func
        if self.kind == "missing pad" and self.functions:
            pads = ("upper", "lower", "abs_upper", "abs_lower")
            if isinstance(function, ast.Attribute) and function.attr in pads and not node.args:
                result = self.offer(node, lambda: ast.Call(ast.Attribute(function.value, "mid", ast.Load()), [], []))
                if result is not node:
                    return result
            if (
                isinstance(function, ast.Name)
                and function.id in ("larger", "smaller", "hull", "max", "min")
                and len(node.args) == 2
            ):
                other = {"larger": "smaller", "smaller": "larger", "max": "min", "min": "max"}.get(function.id)
                if other is None:
                    result = self.offer(node, lambda: node.args[0])
                else:
                    result = self.offer(node, lambda: self.renamed(node, other))
                if result is not node:
                    return result
        if self.kind == "swapped argument" and len(node.args) >= 2 and self.functions and not self.symmetric(node):

            def swap() -> ast.AST:
                changed = copy.deepcopy(node)
                changed.args[0], changed.args[1] = changed.args[1], changed.args[0]
                return changed

            result = self.offer(node, swap)
            if result is not node:
                return result
        return self.generic_visit(node)

    @staticmethod
    def symmetric(node: ast.Call) -> bool:
        """Whether the order of the first two arguments does not matter, or is one of Python's own."""
        names = (
            "larger",
            "smaller",
            "max",
            "min",
            "zip",
            "isinstance",
            "hull",
            "range",
            "sum",
            "getattr",
            "sorted",
            "map",
            "enumerate",
        )
        if any(isinstance(argument, ast.Starred) for argument in node.args[:2]):
            return True
        if isinstance(node.func, ast.Name):
            return node.func.id in names or ast.dump(node.args[0]) == ast.dump(node.args[1])
        return ast.dump(node.args[0]) == ast.dump(node.args[1])

    @staticmethod
    def renamed(node: ast.Call, name: str) -> ast.AST:
        changed = copy.deepcopy(node)
        changed.func = ast.Name(name, ast.Load())
        return changed

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST | None:
        if self.functions:
            text = isinstance(node.left, (ast.Constant, ast.JoinedStr)) and isinstance(
                getattr(node.left, "value", ""), str
            )
            if self.kind == "missing pad" and isinstance(node.op, ast.Add) and not text:
                result = self.offer(node, lambda: node.left)
                if result is not node:
                    return result
            if self.kind == "swapped argument" and isinstance(node.op, (ast.Sub, ast.Div)):
                result = self.offer(node, lambda: ast.BinOp(node.right, node.op, node.left))
                if result is not node:
                    return result
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST | None:
        if self.kind == "off by one" and type(node.value) is int and self.functions:
            return self.offer(node, lambda: ast.Constant(node.value + 1))
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        return node


def files_of(globs: list[str]) -> list[Path]:
    return sorted({path for pattern in globs for path in PACKAGE.glob(pattern)})


def all_faults(globs: list[str]) -> Iterator[Fault]:
    for path in files_of(globs):
        tree = ast.parse(path.read_text())
        for kind in KINDS:
            changer = Changer(kind)
            changer.visit(copy.deepcopy(tree))
            for place, (function, line, what) in enumerate(changer.found):
                yield Fault(str(path.relative_to(PACKAGE)), function, line, kind, place, what)


def drawn(globs: list[str], count: int, seed: int) -> list[Fault]:
    """As many faults of every kind, by seed."""
    rng, faults = random.Random(f"{seed}/mutants"), list(all_faults(globs))
    by_kind = {kind: [f for f in faults if f.kind == kind] for kind in KINDS}
    for own in by_kind.values():
        rng.shuffle(own)
    chosen: list[Fault] = []
    while len(chosen) < count and any(by_kind.values()):
        for own in by_kind.values():
            if own and len(chosen) < count:
                chosen.append(own.pop())
    return chosen


def changed_source(fault: Fault) -> str:
    tree = ast.parse((PACKAGE / fault.file).read_text())
    changed = Changer(fault.kind, fault.place).visit(tree)
    for node in ast.walk(changed):  # an emptied body needs something
        for name in ("body", "orelse", "finalbody"):
            if name == "body" and getattr(node, name, None) == []:
                node.body = [ast.Pass()]
    return ast.unparse(ast.fix_missing_locations(changed))


class Replaced(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module from another source."""

    def __init__(self, module: str, source: str, path: Path):
        self.module, self.source, self.path = module, source, path

    def find_spec(self, name, path=None, target=None):
        if name != self.module:
            return None
        package = self.path.name == "__init__.py"
        where = [str(self.path.parent)] if package else None
        return importlib.util.spec_from_file_location(name, self.path, loader=self, submodule_search_locations=where)

    def create_module(self, spec):
        return None

    def exec_module(self, module) -> None:
        exec(compile(self.source, str(self.path), "exec"), module.__dict__)  # noqa: S102  our own source, one fault in it


def module_name(file: str) -> str:
    parts = Path(file).with_suffix("").parts
    return ".".join((PACKAGE.name, *(parts[:-1] if parts[-1] == "__init__" else parts)))


# --- what a fault has to face ----------------------------------------------------------------------


@dataclass
class Item:
    """Something whose right answer is known: a forgery ("false"), an honest folder ("true"), a trial of forms ("form")."""

    sort: str
    kind: str
    number: int
    files: dict[str, bytes]
    outcome: str = "proved"
    entered: frozenset = frozenset()
    site: str = ""

    def __str__(self) -> str:
        return f"{self.sort} {self.kind} {self.number}"

    def to_json(self) -> dict:
        files = {name: base64.b64encode(data).decode() for name, data in self.files.items()}
        return {**vars(self), "files": files, "entered": sorted(self.entered)}

    @staticmethod
    def from_json(data: dict) -> Item:
        files = {name: base64.b64decode(text) for name, text in data["files"].items()}
        return Item(**{**data, "files": files, "entered": frozenset(map(tuple, data["entered"]))})


def corpus(kinds: list[str], home: Path, seed: int) -> list[Item]:
    """In a process of its own: false forgeries, honest folders, and what each of them enters."""
    import _soundness_trials as trials

    items = []
    for kind in kinds:
        part = trials.KINDS[kind]
        if part == "forged":
            honest = trials.honest_files(home, kind)
            items.append(Item("true", kind, 0, honest))
            rng = random.Random(f"{seed}/{kind}/overstated")
            items += [Item("false", kind, -i, overstated(rng, honest)[0], "refused") for i in range(1, OVERSTATED + 1)]
            wanted = trials.stored(kind, FORGERIES, seed, str(home))
            items += [Item("false", kind, i, f.files, f.outcome) for i, f in enumerate(wanted)]
        elif part == "forms":
            items += [Item("form", kind, i, {}) for i in range(FORMS)]
        else:
            items += [Item("true", kind, i, files) for i, files in enumerate(compiled(kind, seed))]
    trials.watch_refusals()
    entered: dict[str, frozenset] = {}
    for item in items:
        seen: set[tuple[str, str]] = set()

        def enter(frame, event: str, _argument: object, seen: set = seen) -> None:
            if event == "call":
                code = frame.f_code
                if code.co_filename.startswith(str(PACKAGE)):
                    seen.add((code.co_filename[len(str(PACKAGE)) + 1 :], code.co_qualname.rpartition("<locals>.")[2]))

        trials._raised.clear()
        if item.number < FOLLOWED:
            sys.setprofile(enter)
        try:
            wrong = answer(item, seed)
        finally:
            sys.setprofile(None)
        if wrong:
            print(f"without any fault, {item}: {wrong}", file=sys.stderr)
        item.entered, item.site = frozenset(seen), trials._raised[-1].removeprefix("reading ") if trials._raised else ""
        entered[item.kind] = entered.get(item.kind, frozenset()) | item.entered
    for item in items:
        item.entered = item.entered if item.number < FOLLOWED else entered[item.kind]
    return items


def compiled(kind: str, seed: int) -> Iterator[dict[str, bytes]]:
    """Honest folders of random sources."""
    from _soundness_sources import SOURCES as sources

    from certiformer.errors import BadInput

    for number in range(HONEST):
        try:
            files, certified, _ = sources[kind](random.Random(f"{seed}/{kind}/{number}"))
        except BadInput:
            continue
        if certified:
            yield files


def answer(item: Item, seed: int) -> str:
    """What is wrong with the checker's answer; empty if it is right."""
    import _soundness_trials as trials

    try:
        if item.sort == "form":
            from _soundness_forms import FORMS as tried

            for number in range(TOGETHER * item.number, TOGETHER * (item.number + 1)):
                wrong = tried[item.kind](random.Random(f"{seed}/{item.kind}/{number}"))
                if wrong:
                    return f"a trial of {item.kind} shows it: {wrong[:80]}"
            return ""
        from certiformer.kernel.check import check

        verdict = check(trials.put(trials.scratch() / "fault", item.files), workers=1)
    except Exception as error:
        return f"crashed: {type(error).__name__}"
    if item.outcome == "refused":
        said = (verdict.outcome, verdict.exit_code)
        return "" if said in (("refused", 1), ("undecided", 3)) else "an overstated claim was accepted"
    if item.sort == "false":
        return "a false claim was accepted" if verdict.outcome == item.outcome or verdict.exit_code == 0 else ""
    return "" if verdict.accepted and verdict.exit_code == 0 else "an honest folder was refused"


def order_for(fault: Fault, items: list[Item]) -> list[Item]:
    """What enters the changed function: trials of forms and honest folders first, which are quick, then forgeries."""
    own = [item for item in items if not fault.function or (fault.file, fault.function) in item.entered]
    site = f"{fault.file}:{fault.function.rpartition('.')[2]}"

    def rank(item: Item) -> tuple:
        here = (item.site != site, item.site.partition(":")[0] != fault.file)
        return (("form", "true", "false").index(item.sort), *here, item.number)

    return sorted(own, key=rank)


def face(fault: Fault, items: list[Item], seed: int) -> dict:
    """In a forked child: the fault in place, then one item after the other until one exposes it."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    source = changed_source(fault)
    sys.meta_path.insert(0, Replaced(module_name(fault.file), source, PACKAGE / fault.file))
    tried = 0
    began = time.process_time()
    for item in items:
        if time.process_time() - began > SECONDS:
            return {"exposed": "", "tried": tried, "of": len(items)}
        try:
            wrong = answer(item, seed)
        except BaseException as error:  # the fault may break anything
            wrong = f"crashed: {type(error).__name__}"
        tried += 1
        if wrong:
            return {"exposed": wrong, "by": str(item), "tried": tried, "of": len(items)}
    return {"exposed": "", "tried": tried, "of": len(items)}


def forked(work: Callable[[], dict], limit: float) -> tuple[int, int, float]:
    """Starts a child; returns its id, the pipe it will answer through, and when it must be done."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        try:
            told = work()
        except BaseException as error:
            told = {"exposed": f"crashed: {type(error).__name__}: {error}"[:120], "tried": 0, "of": 0}
        os.write(write, json.dumps(told).encode())
        os._exit(0)
    os.close(write)
    return child, read, time.monotonic() + limit


def run(
    faults: list[Fault], kinds: list[str], home: Path, seed: int, workers: int, tell: Callable[[str], None]
) -> dict:
    """Lets each fault face the corpus, in a process that has loaded nothing of certiformer."""
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory(prefix="certiformer-mutants-") as temporary:
        tell(f"collecting what {len(faults)} planted faults have to face")
        parts = [kinds[i::workers] for i in range(workers) if kinds[i::workers]]
        makers = []
        for number, names in enumerate(parts):  # written and read by this program only, in a folder of its own
            place = str(Path(temporary) / f"corpus{number}")
            command = [sys.executable, __file__, "corpus", place, ",".join(names), str(home), str(seed)]
            makers.append((place, subprocess.Popen(command)))
        if any([maker.wait() for _, maker in makers]):
            raise RuntimeError("the corpus of the planted faults could not be made")
        places = [place for place, _ in makers]
        request = {"faults": list(map(vars, faults)), "seed": seed, "workers": workers, "corpus": places}
        process = subprocess.Popen(
            [sys.executable, __file__, "faults"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        process.stdin.write(json.dumps(request))
        process.stdin.close()
        report: dict = {}
        for line in process.stdout:
            told = json.loads(line)
            if "line" in told:
                tell(told["line"])
            else:
                report = told
        if process.wait():
            raise RuntimeError("the process of the planted faults ended badly")
    return report


def all_faced(request: dict) -> dict:
    """Forks one child for each fault, some at a time."""
    import flint  # noqa: F401  loaded here, once for all children
    import numpy  # noqa: F401

    items = [Item.from_json(data) for place in request["corpus"] for data in json.loads(Path(place).read_text())]
    faults = [Fault(**fields) for fields in request["faults"]]
    waiting, running, results = list(enumerate(faults)), {}, {}
    while waiting or running:
        while waiting and len(running) < request["workers"]:
            number, fault = waiting.pop(0)
            if fault.name in EQUIVALENT:
                results[number] = {"exposed": "", "equivalent": EQUIVALENT[fault.name]}
                continue
            own = order_for(fault, items)
            child, pipe, until = forked(lambda f=fault, o=own: face(f, o, request["seed"]), 10 * SECONDS)
            running[pipe] = (number, fault, child, until)
        ready, _, _ = select.select(list(running), [], [], 0.5)
        for pipe in ready:
            number, fault, child, _ = running.pop(pipe)
            raw = os.read(pipe, 65536)
            os.close(pipe)
            os.waitpid(child, 0)
            told = json.loads(raw) if raw else {"exposed": "crashed: the process ended", "tried": 0, "of": 0}
            results[number] = told
            print(
                json.dumps({"line": f"{told['exposed'] or 'NOT EXPOSED'} ({told['tried']} of {told['of']}): {fault}"}),
                flush=True,
            )
        for pipe, (number, _fault, child, until) in list(running.items()):
            if time.monotonic() > until:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                os.close(pipe)
                del running[pipe]
                results[number] = {"exposed": "it does not end", "tried": 0, "of": 0}
    survivors = [
        f"{fault} ({results[n]['tried']} things that enter it, none exposed it)" for n, fault in enumerate(faults)
        if not results[n]["exposed"] and "equivalent" not in results[n]
    ]  # fmt: skip
    how: dict[str, int] = {}
    for told in results.values():
        if told["exposed"]:
            name = told["exposed"].partition(":")[0]
            how[name] = how.get(name, 0) + 1
    return {
        "drawn": len(faults), "exposed": sum(how.values()), "how": how, "survivors": survivors,
        "equivalent": sum("equivalent" in told for told in results.values()),
    }  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1] == "corpus":
        _, _, target, names_, place_of_bases, number_ = sys.argv
        found = corpus(names_.split(","), Path(place_of_bases), int(number_))
        Path(target).write_text(json.dumps([item.to_json() for item in found]))
    else:
        print(json.dumps(all_faced(json.loads(sys.stdin.read()))), flush=True)
