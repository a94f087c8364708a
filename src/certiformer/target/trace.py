"""From a JAX callable to a program: traced once, with 64-bit types, into the same closed language that formulas become.

The claim of a certificate is about the program, never about the Python code: the code runs here, at build time, and
nowhere else. Constants of the trace mean their exact doubles (`jnp.pi` is that double, not pi), derivatives that the
callable defines for itself are ignored, and an operation outside the closed list is refused by name.
"""

from __future__ import annotations

import inspect
import linecache
import re
import traceback
from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from certiformer.errors import BadInput
from certiformer.kernel.programs import MAX_INPUTS, Program
from certiformer.target.interpret import Interpreter, Reals, Truths

# Names of the module math that jax.numpy spells differently.
_JAX_SPELLING = {"atan": "arctan", "asin": "arcsin", "acos": "arccos", "fabs": "abs", "pow": "power"}


def trace(function: Callable[..., Any], inputs: int) -> Program:
    """The program of a callable written in `jax.numpy`.

    A callable with one required parameter gets the vector (x1 .. xD); one with D > 1 of them gets D scalars. It
    returns a number, an array or a tuple of them; the elements in order are the outputs.

    >>> from certiformer.target.show import formula
    >>> formula(trace(lambda x: jnp.sin(3 * jax.lax.stop_gradient(x)) + jnp.log1p(x**2), 1))
    ['sin(3*x1) + log(1 + x1**2)']
    """
    if not 1 <= inputs <= MAX_INPUTS:
        raise BadInput(f"a target has 1 to {MAX_INPUTS} variables, not {inputs}")
    shapes = [(inputs,)] if _takes_vector(function, inputs) else [()] * inputs
    with jax.enable_x64(True):
        try:
            traced = jax.make_jaxpr(function)(*(jax.ShapeDtypeStruct(shape, jnp.float64) for shape in shapes))
        except Exception as error:  # whatever the user's code raises is told in one sentence
            raise _explained(error, function) from None
        return _interpreted(traced, inputs, shapes, function)


def _interpreted(traced: Any, inputs: int, shapes: list[tuple[int, ...]], function: Callable[..., Any]) -> Program:
    interpreter = Interpreter()
    build = interpreter.scalars.build
    variables = np.array([build.var(i) for i in range(inputs)])
    arguments = [Reals(variables)] if len(shapes[0]) == 1 else [Reals(np.asarray(v)) for v in variables]
    try:
        results = interpreter.run(traced.jaxpr, traced.consts, arguments)
        if any(isinstance(r, Truths) or (isinstance(r, np.ndarray) and r.dtype == bool) for r in results):
            raise BadInput("the callable returns truth values; use jnp.where to turn them into numbers")
        outputs = [number for result in results for number in interpreter.finite_reals(result)]
    except BadInput as error:
        place = _place_of(interpreter.path, _file_of(function))
        raise BadInput(f"{error}{place}") from None
    if not outputs:
        raise BadInput(f"the callable {_name(function)!r} returns no numbers")
    return build.program(inputs, outputs)


def _takes_vector(function: Callable[..., Any], inputs: int) -> bool:
    """Whether the callable takes one vector, rather than one scalar for each variable."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some built-in callables have no signature
        return True
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in positional if p.default is p.empty]
    if len(required) == 1 or (not required and len(positional) == 1):
        return True
    starred = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if len(required) == inputs or (starred and len(required) <= inputs):
        return False
    raise BadInput(
        f"the callable {_name(function)!r} has {len(required)} parameters but the box has {inputs} axes; "
        f"give it one vector parameter, or one parameter for each axis"
    )


def _explained(error: Exception, function: Callable[..., Any]) -> BadInput:
    """One sentence for an exception that the callable raised while it was traced."""
    file = _file_of(function)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    place = f" at {file}, line {frames[-1].lineno}" if frames else ""
    line = (linecache.getline(file, frames[-1].lineno or 0) if frames and file else "").strip()
    foreign = _numpy_names(line, getattr(inspect.unwrap(function), "__globals__", {}))
    if isinstance(error, jax.errors.TracerBoolConversionError):
        return BadInput(f"the callable {_name(function)!r} tests a value with Python's if{place}; write jnp.where")
    if isinstance(error, jax.errors.JAXTypeError) and foreign:
        written, spelling = foreign[0]
        return BadInput(
            f"the callable {_name(function)!r} calls {written}{place}, which JAX cannot trace; "
            f"write {spelling} (import jax.numpy as jnp)"
        )
    if isinstance(error, jax.errors.TracerArrayConversionError):
        return BadInput(
            f"the callable {_name(function)!r} calls NumPy{place}, which JAX cannot trace; "
            f"write the same function of jax.numpy (import jax.numpy as jnp)"
        )
    reason = (str(error).strip().splitlines() or [""])[0].rstrip(".")
    return BadInput(f"the callable {_name(function)!r} raised {type(error).__name__}{place}: {reason}")


def _numpy_names(line: str, names: dict[str, Any]) -> list[tuple[str, str]]:
    """The functions of NumPy and of the module math in a line of code, as written and as `jax.numpy` spells them."""
    found = []
    for prefix, name in re.findall(r"(?:\b(\w+)\.)?\b([A-Za-z_]\w*)\s*\(", line):
        owner = names.get(prefix) if prefix else None
        by_module = isinstance(owner, ModuleType) and owner.__name__ in ("numpy", "math")
        bare = names.get(name) if not prefix else None
        by_name = isinstance(bare, np.ufunc) or getattr(bare, "__module__", None) in ("numpy", "math")
        if by_module or by_name:
            original = name if prefix else getattr(bare, "__name__", name)  # an import may have renamed it
            found.append((f"{prefix}.{name}" if prefix else name, f"jnp.{_JAX_SPELLING.get(original, original)}"))
    return found


def _place_of(path: list[Any], file: str | None) -> str:
    """Where in the user's file the innermost operation with a recorded line was written, as far as JAX recorded it."""
    for equation in reversed(path):
        recorded = getattr(getattr(equation, "source_info", None), "traceback", None)
        for frame in getattr(recorded, "frames", ()):
            if file is not None and frame.file_name == file:
                return f" (at {file}, line {frame.line_num})"
    return ""


def _file_of(function: Callable[..., Any]) -> str | None:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code.co_filename if code is not None else None


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)
