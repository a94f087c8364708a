"""The sections of a theorem's docstring: every accepted spelling, and every fault named."""

import pytest

from certiformer.theorem.registry import SECTIONS, parse_sections, section_faults

COMPLETE = "A title.\n\nWords of introduction.\n\n" + "\n\n".join(f"{name}:\n    Text." for name in SECTIONS)


def test_a_complete_docstring_has_no_faults():
    assert section_faults(COMPLETE) == []
    assert list(parse_sections(COMPLETE)) == ["Introduction", *SECTIONS]


@pytest.mark.parametrize(
    "heading",
    [
        "Not certified\n",
        "Not certified:\n",
        "Not certified.\n",
        "## Not certified\n",
        "*Not certified*\n",
        "**Not certified:**\n",
        "**Not certified**:\n",
        "Not certified\n-------------\n",
        "NOT CERTIFIED\n",
        "Not certified: ",
        "**Not certified:** ",
    ],
)
def test_every_spelling_of_a_heading_is_understood(heading):
    docstring = f"A title.\n\nCertified: much.\n\n{heading}speed of\nthe run.\n"
    assert parse_sections(docstring) == {"Certified": "much.", "Not certified": "speed of\nthe run."}


def test_a_section_name_inside_a_sentence_opens_nothing():
    docstring = "A title.\n\nStatement:\n    Tests are cheap.\n    Source: of joy.\nExample sentences too.\n"
    assert list(parse_sections(docstring)) == ["Statement"]


@pytest.mark.parametrize("name", SECTIONS)
def test_a_missing_or_empty_section_is_named(name):
    without = COMPLETE.replace(f"\n\n{name}:\n    Text.", "")
    assert section_faults(without) == [f"the section {name!r} is missing"]
    emptied = COMPLETE.replace(f"\n\n{name}:\n    Text.", f"\n\n{name}:\n")
    assert section_faults(emptied) == [f"the section {name!r} is empty"]


def test_wrong_order_and_repetition_are_named():
    source, statement = "Source:\n    Text.", "Statement:\n    Text."
    swapped = COMPLETE.replace(statement, "@").replace(source, statement).replace("@", source)
    assert "stand in the order Source, Statement" in section_faults(swapped)[0]
    assert section_faults(COMPLETE + "\n\nTests: again.") == ["the docstring has the section 'Tests' twice"]
