"""`certiformer VERB ...`: finds the verb, reads its flags, and turns whatever happens into an exit code.

| code | meaning |
|---|---|
| 0 | certified, or done |
| 1 | refuted, or refused by the checker; a gap or a condition that is met in an audit |
| 2 | bad usage, bad input, or an *invalid* claim |
| 3 | undecided, or proved by the search only; a study whose jobs are not all done |
| 70 | a defect of certiformer (`CERTIFORMER_DEBUG=1` shows where) |
| 130, 143, 141 | interrupted by Ctrl-C; ended by SIGTERM, after the same clean-up; nobody reads the output any more |
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from certiformer._version import __version__
from certiformer.cli.signals import ending_signals_interrupt, interrupted_code
from certiformer.cli.terminal import Terminal
from certiformer.errors import BadInput, MissingExtra

VERBS = {
    "build": "turn a function into a transformer with a proof",
    "compile": "turn a RASP program into a transformer that is proved to compute it",
    "run": "tokens in, tokens out of a compiled program; attention and debugger",
    "prove": "bound the error of a transformer that you bring",
    "curve": "how the proved error of your function falls with the size, as a picture",
    "audit": "say which theorems hold for a trained checkpoint, with every constant",
    "recommend": "a sequence recommender with guarantees: fit, evaluate, top, guarantee, card",
    "check": "ask the checker about a run folder",
    "show": "the claim of a run folder in one sentence, and what it does not say",
    "export": "hand the transformer to ONNX, PyTorch or Hugging Face",
    "size": "how large a transformer for a class of functions must be, and how large suffices",
    "theorem": "the theorems behind it all: statements, assumptions, sources",
    "explore": "a page where the theorems happen, and reports one can touch",
    "rates": "measure how fast errors fall: studies with slopes, intervals and pictures",
    "bench": "repeat the figures we claim, on this machine",
}

OVERVIEW = """certiformer {version}: transformers with mathematical guarantees

usage: certiformer VERB ...        (certiformer VERB --help has the flags and more examples)

{verbs}

start here:
  certiformer build "sin(x1)+sin(x2)" --on "[0,2*pi]^2" --eps 0.1   # a function becomes a proved transformer
  certiformer check runs/sin-x1-sin-x2                              # derives every step of the proof again
  certiformer show runs/sin-x1-sin-x2                               # what is claimed, and what is not
  certiformer compile reverse --length 16                           # a program becomes a proved transformer
  certiformer run runs/reverse "a b c"                              # tokens in, tokens out
  certiformer audit model.safetensors --heads 12                    # what theorems say about a trained checkpoint
  certiformer recommend fit shop.csv                                # a recommender whose hit rate is bounded
  certiformer rates jackson                                         # how fast the error falls with the size
  certiformer completion bash                                       # lets your shell complete verbs and flags (or zsh)
  python -m certiformer                                             # a short demonstration"""

# What a verb works on beside its usual thing; each has a module of its own.
KINDS = {
    "compile": ("machine", "automaton", "circuit", "incontext"),
    "rates": ("pod", "show"),
    "recommend": ("fit", "evaluate", "top", "guarantee", "card"),
}
UNLISTED = ("completion", "demo")  # the script for a shell; what `python -m certiformer` runs
BUG_CODE, CLOSED_PIPE_CODE = 70, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code and lets no exception out."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    terminal = Terminal(given)
    try:
        with ending_signals_interrupt():
            code = _dispatch(given, terminal)
    except SystemExit:  # never ours: code 0 must mean what it says
        code = terminal.error("the target's own code ended the program; a target may only compute", 2)
    except (BadInput, MissingExtra) as problem:
        code = terminal.error(str(problem), 2)
    except KeyboardInterrupt as interrupt:
        code = terminal.error("interrupted", interrupted_code(interrupt))
    except BrokenPipeError:  # whoever read our output has gone
        code = CLOSED_PIPE_CODE
    except OSError as problem:
        code = terminal.error(_system_sentence(problem), 2)
    except MemoryError:
        code = terminal.error("this needs more memory than there is; ask for something smaller", 2)
    except RecursionError:
        code = terminal.error("something in the input is nested too deeply", 2)
    except Exception as defect:
        code = _defect(defect, terminal)
    terminal.close()
    return code


def _dispatch(given: list[str], terminal: Terminal) -> int:
    if len(given) > 1 and given[0] == "help":
        given = [given[1], "--help"]
    if not given or given[0] in ("-h", "--help", "help"):
        terminal.page(overview())
        return 0
    verb, rest = given[0], given[1:]
    if verb in ("--version", "-V"):
        terminal.say(f"certiformer {__version__}")
        return 0
    if verb not in (*VERBS, *UNLISTED):
        near = difflib.get_close_matches(verb, VERBS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the verbs are {', '.join(VERBS)}"
        raise BadInput(f"there is no verb {verb!r}; {hint}")
    from certiformer.cli.options import parse

    name = verb
    if rest and rest[0] in KINDS.get(verb, ()):
        name, verb, rest = f"{verb}_{rest[0]}", f"{verb} {rest[0]}", rest[1:]
    module = import_module(f"certiformer.cli.{name}")
    if hasattr(module, "choose"):  # the flags depend on the first argument
        module, verb, rest = module.choose(verb, rest)
    options = parse(module, verb, rest, terminal)
    if isinstance(options, int):
        return options
    terminal.json, terminal.quiet = (getattr(options, name, False) for name in ("json", "quiet"))
    return module.run(options, terminal)


def overview() -> str:
    """What `certiformer` alone prints."""
    verbs = "\n".join(f"  {verb:<9} {line}" for verb, line in VERBS.items())
    return OVERVIEW.format(version=__version__, verbs=verbs)


def _system_sentence(problem: OSError) -> str:
    place = f"{problem.filename}: " if problem.filename else ""
    return f"{place}{problem.strerror or problem}"


def _defect(defect: Exception, terminal: Terminal) -> int:
    """A mistake of ours: one sentence, and where to see more."""
    if os.environ.get("CERTIFORMER_DEBUG"):
        import traceback

        traceback.print_exception(defect, file=sys.stderr)
    first = (str(defect).strip().splitlines() or [""])[0][:200]
    sentence = f"this is a defect of certiformer, not of your input ({type(defect).__name__}: {first})"
    advice = "please report it with the command and what CERTIFORMER_DEBUG=1 prints"
    return terminal.error(f"{sentence}; {advice}", BUG_CODE)
