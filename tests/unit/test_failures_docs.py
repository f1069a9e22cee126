"""What the page of failures quotes is a text of the code, or of the page of errors."""

import re
from functools import cache

import pytest
from support.docs.errors import PACKAGE, PAGE, page_text, texts_of

FAILURES = PAGE.parents[1] / "when-something-fails.md"
_GAPS = re.compile(r"<\w+>|…|\b\d+\b")


def quoted() -> list[str]:
    """The pieces of three words and more that the first cells of the page have in backticks."""
    rows = [line for line in FAILURES.read_text().splitlines() if line.startswith("| ")]
    texts = [text for row in rows for text in re.findall(r"`([^`]+)`", row.split(" | ")[0])]
    pieces = [piece.strip(" :,;") for text in texts for piece in _GAPS.split(text)]
    return sorted({piece for piece in pieces if len(piece.split()) >= 3})


@cache
def known() -> str:
    """All texts of the code, and of the page of errors."""
    texts = (text for path in PACKAGE.rglob("*.py") for _, text in texts_of(path))
    return "\n".join([page_text(), *texts])


@pytest.mark.parametrize("text", quoted())
def test_what_users_see_is_said_so(text: str) -> None:
    assert text in known()


def test_texts_are_quoted() -> None:
    assert len(quoted()) > 15
