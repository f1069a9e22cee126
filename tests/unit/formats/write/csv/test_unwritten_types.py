"""Types that Spark sends none of: they have no text, rather than a wrong one."""

import pyarrow as pa
import pytest

from dbt.adapters.mzs3.formats.write.csv.scalars import scalar_formatter


@pytest.mark.parametrize(
    "data_type", [pa.timestamp("ns"), pa.timestamp("ms"), pa.float16()], ids=str
)
def test_a_type_that_spark_does_not_send_has_no_text(data_type: pa.DataType) -> None:
    assert scalar_formatter(data_type) is None
