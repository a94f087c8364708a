"""CSV files: what is read, and one sentence for each way to be wrong."""

from __future__ import annotations

import pytest

from certiformer.errors import BadInput
from certiformer.target.csv_file import read_rows


def test_names_and_rows(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbfx1, y\n1, 2\n\n3,\n")
    assert read_rows(tmp_path / "a.csv") == (["x1", "y"], [["1", "2"], ["3", ""]])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "has no rows"),
        (b"x,y\n", "has no rows"),
        (b"x,x\n1,2\n", "has two columns called 'x'"),
        (b"x,y\n1,2\n1\n", "row 2 of .* has 1 fields, the header has 2"),
        (b"x,y\n\xff,2\n", "is not a CSV file"),
        (b"x,y\n" + b"1" * 200_000 + b",2\n", "is not a CSV file"),
    ],
)
def test_mistakes_get_one_sentence(tmp_path, content, sentence):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(BadInput, match=sentence):
        read_rows(tmp_path / "a.csv")


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        read_rows(tmp_path / "a.csv")
    with pytest.raises(BadInput, match="cannot be read: it is a folder"):
        read_rows(tmp_path)
