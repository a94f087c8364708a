"""`certiformer ...` and `python -m certiformer ...`; the latter without arguments is the short demonstration.

Nothing but `os` and `sys` is imported before `check` goes on in an isolated interpreter (`certiformer.isolation`).
"""

import sys


def main() -> int:
    """The command `certiformer`."""
    return _command(sys.argv[1:])


def _command(arguments: list[str]) -> int:
    if arguments[:1] == ["check"]:
        from certiformer.isolation import become

        become(*arguments)
    from certiformer.cli.main import main as run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(_command(sys.argv[1:] or ["demo"]))
