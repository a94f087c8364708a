"""Execute the snippets of Markdown pages and compare what they print with what the pages show.

    python .ci/readme.py run [PAGE ...]         # default page: README.md; exits 1 when a snippet does not hold
    python .ci/readme.py test-command [PAGE]    # print the page's test command: the one that contains `pytest`

The convention, by the language of the fenced block:

* `console`: each line that starts with `$ ` is a command (a line that starts with `> ` continues it), the lines below
  it are what it prints on standard output. The commands of a block share one bash, so `$ echo $?` shows the exit code
  of the command before; a command that fails without being followed by it fails the page. A command whose output is
  not shown may print anything. The test command is left to the caller and not run here.
* `python` with `>>>` lines: a doctest; the blocks of a page share one namespace.
* `python` without them: a program, run by itself; a `text` block that follows at once is what it prints.
* every other language is only read.

`...` in shown output stands for any text, also over several lines. Spaces at line ends do not count. A comment
`<!-- not run: REASON -->` just before a block leaves it out, and the reason is printed.
Commands run in the current directory, without colour, 100 columns wide.
"""

from __future__ import annotations

import doctest
import itertools
import os
import re
import secrets
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^(```+)\s*([\w-]*)[^\n]*\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!--\s*not run:\s*(.+?)\s*-->\s*\Z")
SECONDS_PER_BLOCK = 600


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int
    shown_after: str | None  # the text block that follows at once
    reason_not_run: str | None


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] not in ("run", "test-command"):
        print(__doc__, file=sys.stderr)
        return 2
    pages = {name: Path(name).read_text(encoding="utf-8") for name in arguments[1:] or ["README.md"]}
    if arguments[0] == "test-command":
        for text in pages.values():
            print(test_command(text))
        return 0
    failed = False
    for name, text in pages.items():
        count, faults = run_page(text)
        failed |= bool(faults)
        if count:
            print(f"{name}: {count} snippets executed, {len(faults)} not as shown")
        for line, fault in faults:
            print(f"{name}:{line}: {fault}")
    return 1 if failed else 0


def blocks_of(page: str) -> list[Block]:
    matches = list(FENCE.finditer(page))
    blocks = []
    for match, following in itertools.zip_longest(matches, matches[1:]):
        at_once = following is not None and not page[match.end() : following.start()].strip()
        shown = following.group(3) if following is not None and at_once and following.group(2) == "text" else None
        reason = NOT_RUN.search(page[: match.start()])
        line = page.count("\n", 0, match.start()) + 2
        blocks.append(Block(match.group(2), match.group(3), line, shown, reason.group(1) if reason else None))
    return blocks


def test_command(page: str) -> str:
    """The only command of the page's `console` or `bash` blocks that contains `pytest`."""
    found = []
    for block in blocks_of(page):
        if block.language == "console":
            found += [command for command, _, _ in commands_of(block) if "pytest" in command]
        elif block.language in ("bash", "sh"):
            found += [line for line in block.text.splitlines() if "pytest" in line]
    commands = {re.sub(r"\s+#.*$", "", command).strip() for command in found}
    if len(commands) != 1:
        raise SystemExit(f"the page must show one test command (with `pytest` in it), not {sorted(commands)}")
    return commands.pop()


def run_page(page: str) -> tuple[int, list[tuple[int, str]]]:
    """Run every block; how many were run, and the faults as (line, sentence)."""
    faults: list[tuple[int, str]] = []
    namespace: dict[str, object] = {}
    count = 0
    for block in blocks_of(page):
        if block.language not in ("console", "python"):
            continue
        if block.reason_not_run:
            print(f"line {block.line}: not run: {block.reason_not_run}")
            continue
        count += 1
        if block.language == "console":
            faults += run_console(block)
        elif ">>>" in block.text:
            faults += run_doctest(block, namespace)
        else:
            faults += run_program(block)
    return count, faults


def commands_of(block: Block) -> list[tuple[str, str, int]]:
    """The commands of a console block with the output shown below each and their line numbers."""
    commands: list[tuple[str, str, int]] = []
    for offset, line in enumerate(block.text.splitlines()):
        if line.startswith("$ "):
            commands.append((line[2:], "", block.line + offset))
        elif not commands:
            raise SystemExit(f"line {block.line + offset}: a console block starts with a `$ ` line")
        else:
            command, shown, number = commands[-1]
            if line.startswith("> ") and not shown:
                commands[-1] = (f"{command}\n{line[2:]}", "", number)
            else:
                commands[-1] = (command, f"{shown}{line}\n", number)
    return commands


def run_console(block: Block) -> list[tuple[int, str]]:
    commands = [entry for entry in commands_of(block) if "pytest" not in entry[0]]
    # After each command a line nobody can print by accident, with the exit code, which is then restored for `$?`.
    mark = secrets.token_hex(16)
    script = "".join(f"{c}\n__code=$?; printf '\\n{mark} %d\\n' $__code; (exit $__code)\n" for c, _, _ in commands)
    done = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, **settings())
    printed = re.split(rf"\n{mark} (\d+)\n", done.stdout)
    faults = []
    for index, (command, shown, line) in enumerate(commands):
        if 2 * index + 1 >= len(printed):
            faults.append((line, f"`{command}` ended the shell"))
            break
        output, code = printed[2 * index], int(printed[2 * index + 1])
        code_is_shown = index + 1 < len(commands) and commands[index + 1][0].strip() == "echo $?"
        if code and not code_is_shown:
            faults.append((line, f"`{command}` ended with exit code {code} and printed:\n{output}"))
        elif shown and not agrees(shown, output):
            faults.append((line, difference(f"`{command}`", shown, output)))
    return faults


def run_doctest(block: Block, namespace: dict[str, object]) -> list[tuple[int, str]]:
    test = doctest.DocTestParser().get_doctest(block.text, namespace, "the page", None, block.line - 1)
    test.globs = namespace  # the parser copies it; the blocks of a page share theirs
    report: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    failed = runner.run(test, out=report.append, clear_globs=False).failed
    return [(block.line, "".join(report))] if failed else []


def run_program(block: Block) -> list[tuple[int, str]]:
    done = subprocess.run([sys.executable, "-c", block.text], stdout=subprocess.PIPE, **settings())
    if done.returncode:
        return [(block.line, f"the program ended with exit code {done.returncode}")]
    if block.shown_after is not None and not agrees(block.shown_after, done.stdout):
        return [(block.line, difference("the program", block.shown_after, done.stdout))]
    return []


def settings() -> dict:
    environment = dict(os.environ, NO_COLOR="1", TERM="dumb", COLUMNS="100", PYTHONHASHSEED="0")
    return {"env": environment, "text": True, "timeout": SECONDS_PER_BLOCK, "stdin": subprocess.DEVNULL}


def agrees(shown: str, printed: str) -> bool:
    return doctest.OutputChecker().check_output(tidy(shown), tidy(printed), doctest.ELLIPSIS)


def tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n"


def difference(what: str, shown: str, printed: str) -> str:
    return f"{what} does not print what is shown\n--- shown\n{tidy(shown)}--- printed\n{tidy(printed)}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
