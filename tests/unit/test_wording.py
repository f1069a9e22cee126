"""How many there are, in messages."""

import pytest

from dbt.adapters.mzs3.wording import counted


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 new objects"), (1, "1 new object"), (2, "2 new objects")]
)
def test_a_number_has_its_noun(count: int, text: str) -> None:
    assert counted(count, "new object") == text
