"""What is said of reading objects is in the docs."""

from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "s3-csv-source" / "reading.md"


def test_the_columns_of_a_reject_are_documented():
    for name in ("object", "record", "line", "byte", "raw", "column", "error"):
        assert f"\n| `{name}` |" in PAGE.read_text()
