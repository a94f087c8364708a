"""Planted faults that change nothing that the kernel accepts, with the reason; `_soundness_mutants` leaves them out.

An entry is matched by file name, function, kind of fault and changed expression (its first 90 characters), never by a
line, so that the list survives edits; an entry that matches nothing any more does no harm. *Refused anyway* "
     "means that a
later check refuses the same inputs with another sentence.
"""

from __future__ import annotations

DROPPED, FLIPPED, PAD, ONE_OFF, FIELD, SWAPPED = (
    "dropped case", "flipped inequality", "missing pad", "off by one", "unchecked field", "swapped argument"
)  # fmt: skip
NEVER = "no input comes here: all nodes and kinds are listed before"
SAME = "both orders are the same number"
FINER = "how often a leaf is bisected or a list pruned further is a matter of time; every leaf is still enclosed"
ANYWAY = "refused anyway: what follows cannot go on without it, and ends in another sentence"
SPEED = "two ways to the same numbers; which one is taken is a matter of time"
LOOSER = "a wider enclosure that is still one: only more is refused"
MESSAGE = "words for people, or how often they are told how far it is"
LEAF_STEP = "in return larger(_leaf(local, low, order, bound, extra - 1), _leaf(local,"
SINE_STEP = "in if slope > 0 or slope < 0:"

# file, function, kind, the changed expression in its statement -> why nothing that is accepted can change
EQUIVALENT: dict[tuple[str, str, str, str], str] = {
    ("check.py", "_decide", FIELD, "raise Refused('the recorded witness contradicts the proof')"):
        "both ends are proved before",
    ("check.py", "_decide", FIELD, "raise Refused('the certificate claims a proof but carries none')"): ANYWAY,
    ("rules.py", "stated_bound", FIELD, "raise Refused(f'the bound {node.bound!r} of a proof node is not a posi"):
        ANYWAY,
    ("forward.py", "node_value", FIELD, "raise TypeError(f'{node} is no node that follows an input')"): NEVER,
    ("arrays.py", "ArrayProgram.source", FIELD, "raise TypeError('node 0 of an array program is its input')"): NEVER,
    ("taylor.py", "compose", SWAPPED, "add(multiply(result, inner), constant(tab, series[i])) in result = "
     "add(multiply(result, inner), constant(tab, series[i]))"): SAME,
    ("taylor.py", "compose", SWAPPED, "multiply(result, inner) in result = add(multiply(result, inner), constant(tab, "
     "series[i]))"): SAME,
    ("taylor.py", "_power_series_quotient", SWAPPED, "need - q * centre in residual = residual + (need - q * "
     "centre).abs_upper()"): "only its absolute value is used",
    ("taylor.py", "divide", FLIPPED, "smallest > 0 in if smallest is None or not smallest > 0:"): LOOSER,
    ("taylor.py", "relu", ONE_OFF, "low >= 0 in if low >= 0:"):
        "at low = 0 the chord has slope 1 and width 0: the same form",
    ("functions.py", "_sine", ONE_OFF, f"slope > 0 {SINE_STEP}"): "a ball that only touches zero is monotone, too",
    ("functions.py", "_sine", ONE_OFF, f"slope < 0 {SINE_STEP}"): "a ball that only touches zero is monotone, too",
    ("functions.py", "_sine", ONE_OFF, f"0 {SINE_STEP}"): LOOSER,
    ("functions.py", "point_series", ONE_OFF, "1 in series = method(arb_series([x, 1], prec=order + 1))"):
        "more terms than are used",
    ("cover.py", "_leaf", SWAPPED, f"extra - 1 {LEAF_STEP}"): FINER,
    ("cover.py", "_leaf", SWAPPED, f"extra - 1 {LEAF_STEP}, no. 2"): FINER,
    ("cover.py", "_leaf", ONE_OFF, f"1 {LEAF_STEP}"): FINER,
    ("cover.py", "_leaf", ONE_OFF, f"1 {LEAF_STEP}, no. 2"): FINER,
    ("cover.py", "prove_piece", PAD, "level + 1 in stack.append((high, ends[start + 1], level + 1, local))"): FINER,
    ("cover.py", "prove_piece", PAD, "level + 1 in stack.append((low, start + 1, level + 1, local))"): FINER,
    ("cover.py", "_leaf", FIELD, "raise Refused(f'on the box {box} the function is not defined: {singula"): ANYWAY,
    ("problem.py", "Problem.restrict", SWAPPED, "Problem(self.left.restrict(box), self.right.restrict(box), "
     "self.domain in "
     "return Problem(self.left.restrict(box), self.right.restrict(box), self"): "|A - B| = |B - A|",
    ("programs.py", "_is_rational", ONE_OFF, "2 in if len(text) > 2 * _MAX_CONSTANT_DIGITS + 2 or not "
     "_RATIONAL.fullmatch"):
        "refused anyway: the digits of both parts are counted one line below",
    ("programs.py", "_is_rational", ONE_OFF, "2 in if len(text) > 2 * _MAX_CONSTANT_DIGITS + 2 or not "
     "_RATIONAL.fullmatch, "
     "no. 2"): "refused anyway: the digits of both parts are counted one line below",
    ("programs.py", "rational", FIELD, "raise BadInput(f'{text!r} is not an exact rational constant') from Non"):
        "the kernel asks only for texts that were checked when they were read",
    ("problem.py", "bundles_of", ONE_OFF, "4 in if 4 * len(groups) > len(columns):"): SPEED,
    ("problem.py", "bundles_of", ONE_OFF, "4 * len(groups) > len(columns) in if 4 * len(groups) > len(columns):"): SPEED,
    ("problem.py", "bundles_of", FLIPPED, "4 * len(groups) > len(columns) in if 4 * len(groups) > len(columns):"): SPEED,
    ("problem.py", "FiniteProblem.error_lower", FIELD, "raise Refused('the recorded witness is not a row of the claim')"):
        ANYWAY,
    ("problem.py", "Bundle.add", FIELD, "raise Refused('a hidden unit of the transformer could not be enclosed'"):
        "refused anyway: what is not finite stays so, and the outputs are looked at",
    ("problem.py", "PointNetwork.values", ONE_OFF, "1 in values[position] = node_value(node, values, table(1, "
     "0)) if bundles is"):
        "a table with more variables than a constant has",
    ("rules.py", "finite", FLIPPED, "number % 100 == 0 in if progress and number % 100 == 0:"): MESSAGE,
    ("rules.py", "finite", ONE_OFF, "100 in if progress and number % 100 == 0:"): MESSAGE,
    ("rules.py", "finite", ONE_OFF, "0 in if progress and number % 100 == 0:"): MESSAGE,
    ("rules.py", "finite", ONE_OFF, "problem.target.count > MAX_ROWS in if problem.target.count > MAX_ROWS:"):
        "one row less: a limit of time",
    ("balls.py", "Box.__str__", DROPPED, "[(self.low(i), self.high(i)) for i in range(self.dimension)] in return "
     "about([(self.low(i), self.high(i)) for i in range(self.dimensio"): MESSAGE,
    ("numbers.py", "exact_text", ONE_OFF, "bottom > 1 in if bottom == 1 << bottom.bit_length() - 1 and bottom > 1:"):
        "n/2^0 is n: another text of the same number",
    ("cover.py", "subtrees", ONE_OFF, "ends[start] - start <= largest in if tree[start] == LEAF or ends[start] "
     "- start <= "
     "largest:"): "smaller pieces of the same tree",
    ("certificate.py", "to_json", DROPPED, "[to_json(child) for child in node.children] in data['children'] = "
     "[to_json(child) for "
     "child in node.children]"): "it only writes, and what is written is read again before it is believed",
    ("certificate.py", "from_json", PAD, "depth + 1 in fields['children'] = tuple((from_json(child, depth + 1) for "
     "child in f"):
        "how deeply a proof may be nested is a limit of memory; every step is still checked",
    ("workers.py", "prove_boxes", ONE_OFF, "1 in if workers == 1 or total < SMALL:"): SPEED,
    ("workers.py", "prove_boxes", ONE_OFF, "total < SMALL in if workers == 1 or total < SMALL:"): SPEED,
}  # fmt: skip
