"""Theorem records: every malformed field is refused when the record is made."""

import dataclasses

import pytest

from certiformer.theorem import Assumption, Theorem

GOOD = Theorem(
    id="construct.lookup",
    title="A head looks up a table.",
    kind="exact",
    sources=("vaswani2017, Section 3.2", "classical"),
    verb="compile",
    assumptions=(Assumption("distinct-keys", "The keys are distinct.", "checked"),),
    uses=("construct.gather",),
)


def test_a_good_record_knows_its_name_and_citation_keys():
    assert GOOD.name == "lookup"
    assert GOOD.citations == ("vaswani2017", "classical")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("id", "lookup", "dotted path"),
        ("id", "Construct.Lookup", "dotted path"),
        ("id", None, "dotted path"),
        ("title", " ", "title"),
        ("title", "two\nlines", "title"),
        ("kind", "nice", "kind is one of exact"),
        ("verb", "ponder", "verb is one of build"),
        ("sources", (), "names no source"),
        ("sources", "classical", "sources is a tuple"),
        ("sources", ("nobody1999",), "not in the bibliography"),
        ("assumptions", [GOOD.assumptions[0]], "assumptions is a tuple"),
        ("assumptions", ("distinct keys",), r"an Assumption\(...\)"),
        ("assumptions", GOOD.assumptions * 2, "twice"),
        ("uses", ("construct.lookup",), "never itself"),
        ("uses", ("construct.gather", "construct.gather"), "once"),
        ("uses", ("gather",), "ids of other theorems"),
    ],
)
def test_a_malformed_field_is_refused(field, value, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(GOOD, **{field: value})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Two Words", "A sentence.", "checked"), "hyphens"),
        (("distinct-keys", "  ", "checked"), "sentence"),
        (("distinct-keys", "A sentence.", "believed"), "'checked' or 'trusted'"),
    ],
)
def test_a_malformed_assumption_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Assumption(*arguments)


def test_records_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        GOOD.title = "Another title."  # type: ignore[misc]
