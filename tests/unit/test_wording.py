"""How many there are, in messages."""

import pytest

from dbt.adapters.mzs3.wording import counted, followed_by


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 new objects"), (1, "1 new object"), (2, "2 new objects")]
)
def test_a_number_has_its_noun(count: int, text: str) -> None:
    assert counted(count, "new object") == text


def test_a_sentence_more_begins_where_the_text_ends():
    assert followed_by("it failed", "Nothing is left") == "it failed. Nothing is left"
    assert followed_by("it failed. Cast it.", "Done") == "it failed. Cast it. Done"
    assert followed_by("it failed:\n  1/0\n  ^^^", "Done") == "it failed:\n  1/0\n  ^^^\nDone"
