"""Formulas, constants, boxes and tolerances from text, by a closed grammar and nothing else.

    formula     = expression | "[" expression { "," expression } "]"
    expression  = term { ("+" | "-") term }
    term        = signed { ("*" | "/") signed }
    signed      = ("-" | "+") signed | atom [ ("**" | "^") signed ]
    atom        = number | "pi" | "e" | variable | function "(" expression { "," expression } ")"
                | "where" "(" condition "," expression "," expression ")" | "(" expression ")"
    condition   = expression ("<" | "<=" | ">" | ">=") expression { the same }
    box         = interval { "x" interval }       interval = "[" expression "," expression "]" [ "^" number ]

Numbers are exact rationals (`0.1` is one tenth). As in Python, `-x1**2` is -(x1**2), `2**3**2` is 2**(3**2) and
`0 < x1 < 1` means both. Variables are x1, ..., xD; where the inputs are known to come in tokens, x2_1 is coordinate 1 of
token 2. Every refusal is one sentence with the column.
Standard library only: the checker parses domains and tolerances with this module.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from fractions import Fraction
from functools import reduce

from certiformer.errors import BadInput
from certiformer.kernel.programs import MAX_CONSTANT_BITS, MAX_INPUTS, NAMED_CONSTANTS, Program
from certiformer.target.build import Builder, Condition
from certiformer.target.domain import Domain
from certiformer.target.functions import FUNCTIONS
from certiformer.target.tokens import Token, quoted, tokenize

MAX_NESTING = 100
MAX_LINE = 400  # characters of a tolerance or of an end of a box: it is a part of the sentence of a claim
_MAX_DECIMAL_EXPONENT = 1_233  # 10^1233 < 2^4096 = MAX_CONSTANT_BITS; tested before the power is formed

_VARIABLE = re.compile(r"x[0-9]+")
_TOKEN_VARIABLE = re.compile(r"x([1-9][0-9]{0,3})_([1-9][0-9]{0,3})")  # x2_1 is coordinate 1 of token 2
_USUAL_SPELLING = {"ln": "log", "arctan": "atan", "maximum": "max", "minimum": "min", "fabs": "abs", "if": "where"}
_NOT_A_NUMBER = {"inf", "infinity", "oo", "nan"}


def parse_formula(text: str, inputs: int | None = None, tokens: int | None = None) -> Program:
    """The program of a formula in the variables x1 .. x`inputs` (default: up to the largest one used).

    With `tokens`, a divisor of `inputs`, the variables also have the names x1_1, x1_2, ...: token, then coordinate.

    >>> parse_formula("0.1*x1").nodes
    (('const', '1/10'), ('var', 0), ('mul', 0, 1))
    >>> parse_formula("[x1*x2, x1-x2]").outputs
    (2, 3)
    >>> parse_formula("x2_1 + x3", inputs=4, tokens=2).nodes        # two tokens of two numbers: x2_1 is x3
    (('var', 2), ('add', 0, 0))
    >>> parse_formula("sinn(x1)")
    Traceback (most recent call last):
    certiformer.errors.BadInput: unknown name 'sinn' at column 1 of the formula; did you mean 'sin'?
    """
    if inputs is not None and not 1 <= inputs <= MAX_INPUTS:
        raise BadInput(f"a target has 1 to {MAX_INPUTS} variables, not {inputs}")
    if tokens is not None and (inputs is None or tokens < 1 or inputs % tokens):
        raise BadInput(f"{tokens} tokens do not share {inputs} variables equally")
    parser = Parser(text, "the formula", inputs, tokens)
    outputs = parser.outputs()
    parser.expect_end()
    return parser.build.program(parser.count_inputs(), outputs)


def parse_constant(text: str) -> Program:
    """The program of an expression without variables, such as an end of a box (one input that it does not read).

    >>> parse_constant("2*pi").nodes
    (('const', '2'), ('const', 'pi'), ('mul', 0, 1))
    """
    _require_one_line(text, "the constant")
    parser = Parser(text, "the constant", 0)
    output = parser.expression()
    parser.expect_end()
    return parser.build.program(1, [output])


def parse_epsilon(text: str) -> Fraction:
    """A tolerance: an exact positive rational.

    >>> parse_epsilon("1e-3")
    Fraction(1, 1000)
    """
    wanted = "epsilon must be a positive rational number such as 0.1, 1e-3 or 1/100"
    try:
        _require_one_line(text, "epsilon")
        parser = Parser(text, "epsilon", 0)
        value = parser.build.value(parser.expression())
        parser.expect_end()
    except BadInput as error:
        raise BadInput(f"{wanted} ({error})") from None
    if value is None or value <= 0:
        raise BadInput(f"{wanted}, not {quoted(text)}")
    return value


def parse_domain(text: str, dimension: int | None = None) -> Domain:
    """A box from `"[0,2*pi]^2"`, `"[0,1]x[-1,2]"` or `"[0,1]"`; `dimension` is the number of axes it must have.

    >>> print(parse_domain("[0,2*pi]^2"))
    [0, 2*pi] x [0, 2*pi]
    """
    domain = Parser(text, "the box", 0).box()
    if dimension is not None and domain.dimension != dimension:
        axes = f"{domain.dimension} {'axis' if domain.dimension == 1 else 'axes'}"
        hint = f"; write {text.strip()}^{dimension} to use one interval for all" if domain.dimension == 1 else ""
        raise BadInput(f"the box has {axes} but the target has {dimension} variables{hint}")
    domain.require_order()
    return domain


def _require_one_line(text: object, what: str) -> None:
    """Tolerances and ends of boxes are printed as they were written, so they are one short line of plain text."""
    if isinstance(text, str) and (len(text) > MAX_LINE or not text.isprintable()):
        raise BadInput(f"{what} must be one line of at most {MAX_LINE} printable characters")


class Parser:
    """Recursive descent over the tokens; values are node numbers of `build`. With `inputs` = 0, no variable."""

    def __init__(self, text: str, what: str, inputs: int | None, input_tokens: int | None = None) -> None:
        self.text, self.what, self.inputs, self.input_tokens = text, what, inputs, input_tokens
        self.tokens = tokenize(text, what)
        self.position = 0
        self.depth = 0
        self.largest = 0
        self.plain_x: Token | None = None
        self.build = Builder()

    # Tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def accept(self, *texts: str) -> Token | None:
        """Step over the next token if it is one of these operators."""
        token = self.token
        if token.kind == "operator" and token.text in texts:
            self.position += 1
            return token
        return None

    def expect(self, text: str) -> None:
        if self.accept(text) is None:
            raise self.unexpected(f"'{text}'")

    def expect_end(self) -> None:
        if self.token.kind != "end":
            raise self.unexpected("an operator or the end")

    def unexpected(self, wanted: str) -> BadInput:
        token, before = self.token, self.tokens[self.position - 1]
        if token.kind == "operator" and token.text in ("<", "<=", ">", ">="):
            return self.error("a comparison may stand only as the first argument of where(condition, a, b)", token)
        if token.kind == "operator" and token.text in ("==", "!="):
            return self.error(f"{token.text} is not offered, because two real numbers are never proved equal", token)
        if self.position and before.kind in ("number", "name") and token.kind == "name":
            return self.error(f"a product needs its sign: write {before.text[:20]}*{token.text[:20]}", token)
        return self.error(f"expected {wanted} but found {token}", token)

    def error(self, message: str, token: Token, advice: str = "") -> BadInput:
        return BadInput(f"{message} at column {token.column} of {self.what}" + (f"; {advice}" if advice else ""))

    def nested(self, token: Token, parse: Callable[[], int]) -> int:
        """Run `parse` one level deeper."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise self.error(f"the nesting is deeper than {MAX_NESTING}", token)
        value = parse()
        self.depth -= 1
        return value

    # Grammar

    def outputs(self) -> list[int]:
        if self.accept("[") is None:
            return [self.expression()]
        outputs = [self.expression()]
        while self.accept(","):
            outputs.append(self.expression())
        self.expect("]")
        return outputs

    def expression(self) -> int:
        value = self.term()
        while sign := self.accept("+", "-"):
            operation = self.build.add if sign.text == "+" else self.build.sub
            value = self.built(sign, operation, value, self.term())
        return value

    def term(self) -> int:
        value = self.signed()
        while sign := self.accept("*", "/"):
            operation = self.build.mul if sign.text == "*" else self.build.div
            value = self.built(sign, operation, value, self.signed())
        return value

    def signed(self) -> int:
        if sign := self.accept("-", "+"):
            value = self.nested(sign, self.signed)
            return self.build.neg(value) if sign.text == "-" else value
        base = self.atom()
        if sign := self.accept("**", "^"):
            return self.built(sign, self.build.power, base, self.nested(sign, self.signed))
        return base

    def atom(self) -> int:
        token = self.token
        if token.kind == "number":
            self.position += 1
            return self.built(token, self.build.rational, self.number(token))
        if token.kind == "name":
            self.position += 1
            return self.name(token)
        if self.accept("("):
            value = self.nested(token, self.expression)
            self.expect(")")
            return value
        raise self.unexpected("a number, a variable, a function or '('")

    def number(self, token: Token) -> Fraction:
        mantissa, _, exponent = token.text.lower().partition("e")
        if max(len(mantissa), abs(int(exponent[:6] or "0"))) > _MAX_DECIMAL_EXPONENT or len(exponent) > 6:
            raise self.error(f"the number needs more than {MAX_CONSTANT_BITS} binary digits", token)
        return Fraction(token.text)

    def name(self, token: Token) -> int:
        name = token.text
        if name in NAMED_CONSTANTS:
            return self.build.constant(name)
        if name in FUNCTIONS or name in ("min", "max", "where"):
            if self.token.text != "(":
                raise self.error(f"{name} needs its arguments in parentheses", token)
            self.position += 1
            return self.nested(token, lambda: self.call(token))
        if name == "x" or _VARIABLE.fullmatch(name):
            return self.variable(token)
        if re.fullmatch(r"x[0-9]+_[0-9]+", name):
            return self.token_variable(token)
        if name.lower() in _NOT_A_NUMBER:
            raise self.error(f"{quoted(name)} is not a real number", token)
        known = [*FUNCTIONS, "min", "max", "where", *NAMED_CONSTANTS, *(f"x{i + 1}" for i in range(self.inputs or 0))]
        close = difflib.get_close_matches(name[:40].lower(), known, 1)
        suggestion = _USUAL_SPELLING.get(name) or (close[0] if close else None)
        advice = f"did you mean {suggestion!r}?" if suggestion else "the names known are " + ", ".join(known[:20])
        raise self.error(f"unknown name {quoted(name)}", token, advice)

    def variable(self, token: Token) -> int:
        if self.inputs == 0:
            raise self.error(f"{quoted(token.text)} is a variable but only constants may stand here", token)
        if token.text == "x":
            self.plain_x = token
            number = 1
        else:
            number = int(token.text[1:5])
        if len(token.text) > 4 or number > (self.inputs or MAX_INPUTS) or number < 1 or token.text[1:2] == "0":
            last = self.inputs or MAX_INPUTS
            raise self.error(f"unknown variable {quoted(token.text)}", token, f"the variables are x1 to x{last}")
        self.largest = max(self.largest, number)
        return self.build.var(number - 1)

    def token_variable(self, token: Token) -> int:
        """The variable x2_1: coordinate 1 of token 2."""
        if self.inputs == 0:
            raise self.error(f"{quoted(token.text)} is a variable but only constants may stand here", token)
        if self.inputs is None or self.input_tokens is None:
            advice = "names of a token and a coordinate need the number of tokens (--tokens)"
            raise self.error(f"unknown variable {quoted(token.text)}", token, advice)
        match, width = _TOKEN_VARIABLE.fullmatch(token.text), self.inputs // self.input_tokens
        place, coordinate = (int(match[1]), int(match[2])) if match else (0, 0)
        if not (1 <= place <= self.input_tokens and 1 <= coordinate <= width):
            advice = f"the tokens are 1 to {self.input_tokens} and their coordinates 1 to {width}"
            raise self.error(f"unknown variable {quoted(token.text)}", token, advice)
        return self.build.var((place - 1) * width + coordinate - 1)

    def count_inputs(self) -> int:
        inputs = self.inputs or max(self.largest, 1)
        if self.plain_x and inputs > 1:
            raise self.error("plain x may stand only in a formula of one variable", self.plain_x, "write x1")
        return inputs

    def call(self, token: Token) -> int:
        """The arguments and the closing parenthesis of a function call, and its value."""
        name = token.text
        condition = self.condition() if name == "where" else None
        arguments = []
        if condition is None:
            arguments.append(self.expression())
        while self.accept(","):
            arguments.append(self.expression())
        self.expect(")")
        if condition is not None:
            self.check_arity(token, arguments, 2, "a condition and two values, as in where(x1 < 0, 0, x1)")
            return self.build.select(condition, *arguments)
        if name in ("min", "max"):
            if len(arguments) < 2:
                raise self.error(f"{name} takes two or more arguments", token)
            return reduce(getattr(self.build, name), arguments)
        self.check_arity(token, arguments, 1, "one argument")
        return self.built(token, lambda a: FUNCTIONS[name](self.build, a), *arguments)

    def condition(self) -> Condition:
        """One comparison, or a chain of them that must all hold."""
        left = self.expression()
        links: list[Condition] = []
        while sign := self.accept("<", "<=", ">", ">="):
            right = self.expression()
            low, high = (left, right) if sign.text.startswith("<") else (right, left)
            links.append(self.build.compare("le" if sign.text.endswith("=") else "lt", low, high))
            left = right
        if not links or self.token.text in ("==", "!="):
            raise self.unexpected("a comparison <, <=, > or >=")
        return links[0] if len(links) == 1 else ("and", *links)

    def check_arity(self, token: Token, arguments: list[int], count: int, wanted: str) -> None:
        if len(arguments) != count:
            raise self.error(f"{token.text} takes {wanted}", token)

    def built(self, token: Token, operation: Callable[..., int], *arguments: int | Fraction) -> int:
        """Apply a builder operation; what it refuses (a division by zero, a huge power) is told with the column."""
        try:
            return operation(*arguments)
        except BadInput as error:
            raise self.error(str(error), token) from None

    # Boxes

    def box(self) -> Domain:
        bounds = self.interval()
        while self.token.kind == "name" and self.token.text in ("x", "X"):
            self.position += 1
            bounds += self.interval()
            if len(bounds) > MAX_INPUTS:
                raise BadInput(f"the box has more than {MAX_INPUTS} axes")
        self.expect_end()
        return Domain(tuple(bounds))

    def interval(self) -> list[tuple[str, str]]:
        self.expect("[")
        low = self.source()
        self.expect(",")
        high = self.source()
        self.expect("]")
        return [(low, high)] * (self.repetitions() if self.accept("^", "**") else 1)

    def source(self) -> str:
        """The text of one expression, read but not kept: a certificate stores the ends as they were written."""
        first = self.position
        self.expression()
        return self.text[self.tokens[first].start : self.tokens[self.position - 1].stop]

    def repetitions(self) -> int:
        token = self.token
        if token.kind != "number" or not token.text.isdigit() or not 1 <= int(token.text[:6]) <= MAX_INPUTS:
            raise self.error(f"the exponent of an interval is a whole number from 1 to {MAX_INPUTS}", token)
        self.position += 1
        return int(token.text)
