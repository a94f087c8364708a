"""The parser: exact values against an independent evaluation, and one sentence for everything hostile."""

from __future__ import annotations

import time
from fractions import Fraction

import flint
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certiformer.errors import BadInput
from certiformer.kernel.programs import MAX_INPUTS
from certiformer.target import parse_constant, parse_domain, parse_epsilon, parse_formula
from certiformer.target.functions import FUNCTIONS
from certiformer.target.tokens import MAX_TEXT
from target.oracle import ball, balls, exact, formulas, points


@given(formulas(), st.lists(points, min_size=1, max_size=3))
@settings(max_examples=400, deadline=None)
def test_random_formulas_have_their_exact_value(pair, many):
    text, value = pair
    try:
        program = parse_formula(text, 2)
    except BadInput as error:
        assert "zero" in str(error) or "larger than" in str(error) or "nesting" in str(error)
        return
    for point in many:
        assert exact(program, point) == [value(point)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1+2*3", 7),
        ("2*3-4*5", -14),
        ("1-2-3", -4),
        ("8/4/2", 1),
        ("2**3**2", 512),
        ("(2**3)**2", 64),
        ("-2**2", -4),
        ("(-2)**2", 4),
        ("2**-1", Fraction(1, 2)),
        ("2^-2^2", Fraction(1, 16)),
        ("--3", 3),
        ("-+-3", 3),
        ("2*-3", -6),
        ("2/-4", Fraction(-1, 2)),
        ("-2*3", -6),
        ("4-(-3)", 7),
        ("0.1", Fraction(1, 10)),
        ("1e-3", Fraction(1, 1000)),
        ("1.5E+2", 150),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("0.1+0.2-0.3", 0),
        ("1e-400*1e400", 1),
        ("  1 + 2 ", 3),
        ("min(3,1,2)", 1),
        ("max(3,1,2)", 3),
        ("where(1<2,5,6)", 5),
        ("where(2<=2,5,6)", 5),
        ("where(2>2,5,6)", 6),
        ("where(1>=2,5,6)", 6),
        ("where(1<2<=2<3,5,6)", 5),
        ("where(1<2>3,5,6)", 6),
        ("sign(-3)+sign(0)+sign(7)", 0),
        ("relu(-3)+relu(4)", 4),
        ("9**0.5", 3),
        ("4**1.5", 8),
        ("4**-0.5", Fraction(1, 2)),
        ("0**0", 1),
    ],
)
def test_precedence_and_exact_numbers(text, value):
    assert parse_constant(text).nodes == (("const", str(Fraction(value))),)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("sinh(x1)", lambda b: (b.exp() - (-b).exp()) / 2),
        ("cosh(x1)", lambda b: b.cosh()),
        ("sigmoid(x1)", lambda b: 1 / (1 + (-b).exp())),
        ("x1**(1/3)", lambda b: b.root(3)),
        ("2**x1", lambda b: flint.arb(2) ** b),
        ("x1**x1", lambda b: b**b),
        ("e**(2*x1)", lambda b: (2 * b).exp()),
        ("tan(x1)*atan(x1)+erf(x1)*tanh(x1)", lambda b: b.tan() * b.atan() + b.erf() * b.tanh()),
        ("sqrt(x1)-log(x1)", lambda b: b.sqrt() - b.log()),
        ("pi*x1", lambda b: b.pi() * b),
    ],
)
@pytest.mark.parametrize("point", [Fraction(1, 7), Fraction(5, 4), Fraction(9)])
def test_rewritten_functions_have_their_value(text, meant, point):
    (found,) = balls(parse_formula(text), [point])
    flint.ctx.prec = 200
    wanted = meant(ball(point))
    flint.ctx.prec = 53
    assert found.is_finite() and found.overlaps(wanted)
    assert found.rad() < 1e-40 * (1 + abs(found.mid()))  # 200 bits are 60 digits: the overlap above means something


def test_outputs_and_inputs():
    program = parse_formula("[x1*x2, x1-x2]")
    assert exact(program, (5, 3)) == [15, 2]
    assert parse_formula("x3").inputs == 3
    assert parse_formula("7").inputs == 1
    assert parse_formula("x1", 4).inputs == 4
    assert parse_formula("x**2") == parse_formula("x1**2")
    assert parse_formula("x", 1) == parse_formula("x1", 1)
    assert parse_formula(f"x{MAX_INPUTS}").inputs == MAX_INPUTS


LIMITED = "(" * 100 + "x1" + ")" * 100


def test_limits_are_reached():
    assert parse_formula(LIMITED) == parse_formula("x1")
    assert parse_formula("-" * 100 + "x1") == parse_formula("x1")
    assert len("x1" + " " * (MAX_TEXT - 2)) == MAX_TEXT
    parse_formula("x1" + " " * (MAX_TEXT - 2))
    assert len(parse_formula("+".join(f"sin(x{i})" for i in range(1, 201))).outputs) == 1


HOSTILE = {
    "__import__('os').system('true')": "character",
    "x1.__class__": "character '.' at column 3",
    "().__class__.__bases__": "character '.' at column 3",
    "lambda: x1": "character ':'",
    "[x1 for x1 in x2]": "column 5",
    "print(x1)": "unknown name 'print'",
    "eval(x1)": "unknown name 'eval'",
    "exec": "unknown name 'exec'",
    "_": "unknown name '_'",
    "open(x1)": "unknown name 'open'",
    "f'{x1}'": "character",
    "x1 if x1 else x2": "column 4",
    "x1 := 3": "character ':'",
    "x1 = 3": "character '='",
    "x1 == 3": "==",
    "x1 & x2": "character '&'",
    "x1 // x2": "expected a number",
    "x1 % 2": "character '%'",
    "x1 @ x2": "character '@'",
    "~x1": "character '~'",
    "x1!": "character '!'",
    "#x1": "character '#'",
    "1_000": "write 1*_000",
    "0x10": "write 0*x10",
    "1j": "write 1*j",
    "1e": "write 1*e",
    "1e+": "write 1*e",
    "": "empty",
    " \n\t ": "empty",
    "\0": "character '\\x00'",
    "x1\0": "column 3",
    "x1\u2212x2": "write - instead",
    "x1\u00d7x2": "write * instead",
    "\u03c0": "write pi instead",
    "s\u0456n(x1)": "column 2",
    "\uff58\uff11": "column 1",
    "x\u0661": "column 2",
    "x1\u00b2": "write **2 instead",
    "x1\u200b": "column 3",
    "\ud800": "column 1",
    "9**9**9": "exponent",
    "9^9^9^9^9^9": "exponent",
    "2**(10**100)": "exponent",
    "x1**1001": "exponent",
    "x1**-1001": "exponent",
    "((x1**1000)**1000)**1e9": "exponent",
    "1e99999": "binary digits",
    "1e-99999": "binary digits",
    "1e" + "9" * 1900: "binary digits",
    "9" * 1990: "binary digits",
    "0." + "1" * 1900: "binary digits",
    "(" * 101 + "x1" + ")" * 101: "deeper than 100",
    "-" * 101 + "x1": "deeper than 100",
    "sin(" * 101 + "x1" + ")" * 101: "deeper than 100",
    "x1**" * 101 + "2": "deeper than 100",
    "where(x1<1," * 101 + "1" + ",2)" * 101: "deeper than 100",
    "(" * 1999: "deeper than 100",
    "x" * 2001: "2001 characters",
    "x1+" * 400_000 + "x1": "1200002 characters",
    "x1 x2": "write x1*x2",
    "2x1": "write 2*x1",
    "2(x1)": "expected an operator",
    "(x1)(x2)": "expected an operator",
    "1.2.3": "expected an operator",
    "x1)": "found ')'",
    "(x1": "found the end at column 4",
    "x1,x2": "found ','",
    "[x1,x2": "found the end",
    "[x1,]": "found ']'",
    "[]": "found ']'",
    "[[x1],[x2]]": "found '['",
    "x1[0]": "found '['",
    "sin": "parentheses",
    "sin x1": "parentheses",
    "sin()": "found ')'",
    "sin(x1,x2)": "one argument",
    "min(x1)": "two or more",
    "where(x1,1,2)": "expected a comparison",
    "where(x1<1,2)": "condition and two values",
    "where(x1<1)": "condition and two values",
    "where(x1<1,2,3,4)": "condition and two values",
    "where(x1==1,2,3)": "==",
    "where(x1!=1,2,3)": "!=",
    "where((x1<1),2,3)": "only as the first argument",
    "x1<x2": "only as the first argument",
    "sin(x1<1)": "only as the first argument",
    "sinn(x1)": "did you mean 'sin'?",
    "ln(x1)": "did you mean 'log'?",
    "arctan(x1)": "did you mean 'atan'?",
    "Pi": "did you mean 'pi'?",
    "X1": "did you mean 'x1'?",
    "floor(x1)": "unknown name 'floor'",
    "y": "unknown name 'y'",
    "x0": "unknown variable 'x0'",
    "x01": "unknown variable 'x01'",
    "x3": "x1 to x2",
    "x" + "9" * 1000: "unknown variable",
    "x+1": "write x1",
    "inf": "not a real number",
    "nan*x1": "not a real number",
    "1/0": "column 2",
    "sqrt(1-2)": "real number",
    "**x1": "found '**'",
    "x1**": "found the end",
    "+": "found the end",
    "x1 + * x2": "found '*' at column 6",
}


@pytest.mark.parametrize("text", HOSTILE, ids=lambda t: ascii(t[:25]))
def test_hostile_text_gets_one_sentence_at_once(text):
    start = time.perf_counter()
    with pytest.raises(BadInput) as caught:
        parse_formula(text, 2)
    message = str(caught.value)
    assert time.perf_counter() - start < 5  # a hang would be minutes; ordinary refusals take under a millisecond
    assert HOSTILE[text] in message
    assert "\n" not in message and len(message) < 300 and message.isprintable()


@given(st.text(max_size=60) | st.text("x12+-*/()[],.<>=^e sincowhr", max_size=60))
@settings(max_examples=500, deadline=None)
def test_any_text_is_read_or_refused(text):
    try:
        outputs = len(parse_formula(text).outputs)
    except BadInput as error:
        assert str(error).isprintable() and len(str(error)) < 300
    else:
        assert outputs == 1 + text.count(",") or "(" in text  # commas outside a call separate outputs


@pytest.mark.parametrize("text", [None, 3, b"x1", ["x1"]])
def test_only_text_is_read(text):
    for parse in (parse_formula, parse_constant, parse_domain, parse_epsilon):
        with pytest.raises(BadInput, match="must be text"):
            parse(text)


@pytest.mark.parametrize("inputs", [0, -1, MAX_INPUTS + 1])
def test_the_number_of_variables_is_limited(inputs):
    with pytest.raises(BadInput, match="variables"):
        parse_formula("x1", inputs)


def test_the_error_points_to_the_column():
    for text, column in (("x1 + foo(x2)", 6), ("x1 + sin(x2", 12), ("1/(2-2)", 2), ("[x1, x2*, 3]", 9)):
        with pytest.raises(BadInput, match=rf"at column {column} of the formula"):
            parse_formula(text)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_function_of_the_table_is_parsed(name):
    assert parse_formula(f"{name}(x1)").inputs == 1


# Constants and tolerances


def test_constants_have_no_variables():
    assert parse_constant("2*pi").inputs == 1
    for text in ("x1", "x", "2*x3"):
        with pytest.raises(BadInput, match="variable"):
            parse_constant(text)
    with pytest.raises(BadInput):
        parse_constant("[1,2]")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", Fraction(1, 10)),
        ("1e-3", Fraction(1, 1000)),
        ("1/100", Fraction(1, 100)),
        ("2**-7", Fraction(1, 128)),
        (" 3 ", 3),
    ],
)
def test_epsilon(text, value):
    assert parse_epsilon(text) == value


@pytest.mark.parametrize(
    "text",
    ["0", "-0.1", "0.0", "nan", "NaN", "inf", "-inf", "pi", "x1", "", "0.1 0.2", "1e-99999", "0.1;", "1-1", "abc"],
)
def test_bad_epsilon(text):
    with pytest.raises(BadInput, match="epsilon must be a positive rational number") as caught:
        parse_epsilon(text)
    assert "\n" not in str(caught.value)


# Boxes


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("[0,2*pi]^2", [("0", "2*pi")] * 2),
        ("[0,1]x[-1,2]", [("0", "1"), ("-1", "2")]),
        (" [ 0 , 1 ] ", [("0", "1")]),
        ("[0,1]**3", [("0", "1")] * 3),
        ("[0,1]^2x[1, 3]X[-pi, pi]", [("0", "1")] * 2 + [("1", "3"), ("-pi", "pi")]),
        ("[0.1,0.2]", [("0.1", "0.2")]),
        ("[(0),(sqrt(2) + 1)]", [("(0)", "(sqrt(2) + 1)")]),
        ("[0,1e-300]", [("0", "1e-300")]),
        ("[1,1+1e-300]", [("1", "1+1e-300")]),
        ("[-exp(1),e*2]", [("-exp(1)", "e*2")]),
        ("[min(1,2),where(1<2,3,4)]", [("min(1,2)", "where(1<2,3,4)")]),
    ],
)
def test_boxes(text, bounds):
    domain = parse_domain(text)
    assert domain.bounds == tuple(bounds)
    assert parse_domain(str(domain).replace(" x ", "x")) == domain
    assert len(domain.ends()) == domain.dimension


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[1,0]", "reversed"),
        ("[pi,3]", "reversed"),
        ("[0,1]x[2,1]", "axis 2"),
        ("[1,1]", "empty"),
        ("[0.1,1/10]", "empty"),
        ("[pi,pi]", "empty"),
        ("[1,1-1e-300]", "empty"),
        ("[0,inf]", "not a real number"),
        ("[-inf,inf]", "not a real number"),
        ("[nan,1]", "not a real number"),
        ("[0,1/0]", "zero"),
        ("[0,log(-1)]", "real number"),
        ("[0,sqrt(-pi)]", "not a real number"),
        ("[0,1/sin(0*pi)]", "zero"),
        ("[0,10**400]", "beyond 1e+300"),
        ("[0,exp(1000)]", "beyond 1e+300"),
        ("[0,x1]", "variable"),
        ("[0,1]^0", "exponent of an interval"),
        ("[0,1]^1.5", "exponent of an interval"),
        ("[0,1]^-1", "exponent of an interval"),
        ("[0,1]^99999999999", "exponent of an interval"),
        ("[0,1]^200x[0,1]^200", "more than 256 axes"),
        ("[0,1", "expected ']'"),
        ("[0]", "expected ','"),
        ("[0,1,2]", "expected ']'"),
        ("(0,1)", "expected '['"),
        ("[0,1][0,1]", "found '['"),
        ("[0,1]x", "expected '['"),
        ("", "empty"),
        ("[]", "found ']'"),
        ("0,1", "expected '['"),
        ("[0,9**9**9]", "exponent"),
    ],
)
def test_bad_boxes(text, part):
    with pytest.raises(BadInput) as caught:
        parse_domain(text)
    assert part in str(caught.value) and "\n" not in str(caught.value)


def test_the_box_must_have_the_dimension_of_the_target():
    assert parse_domain("[0,1]^2", 2).dimension == 2
    with pytest.raises(BadInput, match=r"1 axis but the target has 2 variables; write \[0,1\]\^2"):
        parse_domain("[0,1]", 2)
    with pytest.raises(BadInput, match="3 axes but the target has 2 variables"):
        parse_domain("[0,1]^3", 2)


@pytest.mark.parametrize(
    ("inputs", "tokens", "name", "plain"),
    [(4, 2, "x1_1", "x1"), (4, 2, "x1_2", "x2"), (4, 2, "x2_1", "x3"), (4, 2, "x2_2", "x4"), (3, 3, "x3_1", "x3"), (3, 1, "x1_3", "x3"), (12, 1, "x1_12", "x12"), (24, 12, "x11_2", "x22")],
)  # fmt: skip
def test_a_variable_may_be_named_by_token_and_coordinate(inputs, tokens, name, plain):
    assert parse_formula(f"sin({name})", inputs, tokens) == parse_formula(f"sin({plain})", inputs)
    assert parse_formula(f"{name} - {plain}", inputs, tokens).inputs == inputs  # both spellings in one formula


@pytest.mark.parametrize(
    "name", ["x0_1", "x3_1", "x1_0", "x1_3", "x01_1", "x1_01", "x99999_1", "x1_99999", "x1_1_1", "x_1", "x1_", "X1_1"]
)
def test_a_name_outside_the_tokens_is_refused(name):
    with pytest.raises(BadInput, match=f"unknown .*{name}") as caught:
        parse_formula(f"1 + {name}", 4, 2)
    assert "column 5" in str(caught.value)


def test_token_names_need_the_number_of_tokens():
    for inputs in (None, 4):
        with pytest.raises(BadInput, match=r"unknown variable 'x1_2' at column 1 .*--tokens"):
            parse_formula("x1_2", inputs)
    with pytest.raises(BadInput, match="only constants"):
        parse_constant("x1_2")
    for inputs, tokens in ((None, 2), (3, 2), (4, 0), (4, -2), (2, 4)):
        with pytest.raises(BadInput, match="do not share"):
            parse_formula("x1", inputs, tokens)


@pytest.mark.parametrize("text", ["1\n", "1 +\n2", "\t1", "1\r", "1" + " " * 400])
def test_a_tolerance_and_the_ends_of_a_box_are_one_short_printable_line(text):
    """They are printed within the sentence of a claim, as they were written."""
    for read in (parse_epsilon, parse_constant):
        with pytest.raises(BadInput, match="one line of at most 400 printable characters"):
            read(text)
    with pytest.raises(BadInput, match="one line of at most 400 printable characters"):
        parse_domain(f"[0,0+{text}+0]")
    assert parse_formula(f"x1 + {text}").inputs == 1  # a formula may be written in several lines
