"""The meaning of a program, read node by node as the table of the target language says it, without the library's `fold`.

`operations` has one method per operation and is asked for numbers only. "No value" is None, or NaN in balls.
"""

from __future__ import annotations

from typing import Any

from certiformer.target import Program


def read(program: Program, point: list, operations: Any) -> list:
    """The outputs at a point; a value that is missing stays missing wherever it is used."""
    values: list = []
    for name, *rest in program.nodes:
        if name == "var":
            values.append(point[rest[0]])
            continue
        if name == "const":
            values.append(operations.constant(rest[0]))
            continue
        used = {"pow": rest[:1], "where": rest[1:3]}.get(name, rest)
        missing = [values[k] for k in used if no_value(values[k])]
        if missing:
            values.append(missing[0])
        elif name == "where":
            values.append(operations.where(rest[0], *(values[k] for k in rest[1:])))
        elif name == "pow":
            values.append(operations.pow(values[rest[0]], rest[1]))
        else:
            values.append(getattr(operations, name)(*(values[k] for k in rest)))
    return [values[o] for o in program.outputs]


def no_value(value: Any) -> bool:
    """Whether a value of an oracle stands for none: None, or a ball or a float that is not finite."""
    return value is None or value != value or (hasattr(value, "is_finite") and not value.is_finite())
