"""The checks of .ci/run on both supported lines of JAX, for machines that have several Pythons.

`nox` runs everything it finds an interpreter for; `nox -s tests-3.13` runs one session.
"""

from __future__ import annotations

import nox

nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_missing_interpreters = False

# Python 3.11 stays on JAX 0.10.1 (0.10.2 computes wrong rows on CPU); later Pythons get the newest line we support.
JAX_FOR_PYTHON = {"3.11": "jax==0.10.1", "3.13": "jax==0.12.*"}


@nox.session(python=list(JAX_FOR_PYTHON))
def tests(session: nox.Session) -> None:
    """The tests of the default run; arguments after `--` go to pytest."""
    session.install("-e", ".[dev]", JAX_FOR_PYTHON[str(session.python)])
    session.run("python", "-m", "pytest", "-q", "-n", "2", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Formatting, types, import direction, dropped checks."""
    session.install("-e", ".[dev]")
    session.run("bash", ".ci/lint", external=True)


@nox.session
def docs(session: nox.Session) -> None:
    """The strict documentation build, into the folder site."""
    session.install("-e", ".[docs]")
    session.run("bash", ".ci/docs", "site", external=True)
