"""The history's name in SQL."""

import pytest

from dbt.adapters.mzs3.export.history_table import history_table


@pytest.mark.parametrize(
    ("schema", "table"),
    [
        ("analytics", "`analytics`.`mzs3_copy_history`"),
        ("lake.sales", "`lake`.`sales`.`mzs3_copy_history`"),
        ("odd`name; --", "`odd``name; --`.`mzs3_copy_history`"),
    ],
)
def test_every_name_is_quoted_by_itself(schema: str, table: str) -> None:
    assert history_table(schema) == table
