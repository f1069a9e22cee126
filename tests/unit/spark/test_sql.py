from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.mzs3.spark.sql import quote_identifier, quote_literal

_UNESCAPED = {"n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "\\": "\\", "'": "'"}


def read_back(literal: str) -> str:
    """A literal as Spark's parser reads it."""
    text, out, at = literal[1:-1], [], 0
    while at < len(text):
        if text.startswith("\\u", at):
            out.append(chr(int(text[at + 2 : at + 6], 16)))
            at += 6
        elif text[at] == "\\":
            out.append(_UNESCAPED[text[at + 1]])
            at += 2
        else:
            assert text[at] != "'", "the literal ends too early"
            out.append(text[at])
            at += 1
    return "".join(out)


def test_an_identifier_is_in_backticks():
    assert quote_identifier("a b") == "`a b`"


def test_a_backtick_in_an_identifier_is_doubled():
    assert quote_identifier("a`; drop table b") == "`a``; drop table b`"


@given(st.text())
def test_a_literal_reads_back_as_its_text(text):
    assert read_back(quote_literal(text)) == text
