"""What `copy_to_s3` writes, a source reads back as the same table."""

import io
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.source.fields import decoder

from dbt.adapters.mzs3.formats.read.chunks import Chunks
from dbt.adapters.mzs3.formats.read.dialect import SourceDialect
from dbt.adapters.mzs3.formats.write.csv.format import CsvEncoder
from dbt.adapters.mzs3.types.table import arrow_type

TEXT = st.text(
    st.one_of(
        st.sampled_from('",\\\n\r\t |'), st.characters(codec="utf-8", exclude_characters="\0")
    )
)
LONG = st.integers(-(2**63), 2**63 - 1)


def decimals(precision, scale):
    top = 10**precision - 1
    return st.integers(-top, top).map(lambda digits: Decimal(f"{digits}e-{scale}"))


# Days and microseconds as PostgreSQL has them: from 4714 BC on; here 4713 BC, to be on its side.
DAYS = st.integers(-2_440_000, 2**31 - 1) | st.integers(-800_000, 3_000_000)
MICROSECONDS = st.integers(-2_440_000 * 86_400_000_000, 2**63 - 1)

VALUES = {
    "string": TEXT,
    "boolean": st.booleans(),
    "tinyint": st.integers(-128, 127),
    "smallint": st.integers(-(2**15), 2**15 - 1),
    "int": st.integers(-(2**31), 2**31 - 1),
    "bigint": LONG,
    "float": st.floats(width=32),
    "double": st.floats(),
    "decimal(12,2)": decimals(12, 2),
    "decimal(38,18)": decimals(38, 18),
    "decimal(38,38)": decimals(38, 38),
    "date": DAYS,
    "timestamp": MICROSECONDS,
    "timestamp_ntz": MICROSECONDS,
    "binary": st.binary(),
}


@pytest.mark.parametrize("data_type", VALUES)
@pytest.mark.parametrize("dialect", [SourceDialect(), SourceDialect(delimiter="\t", null="\\N")])
@examples(40)
@given(data=st.data())
def test_there_and_back(data_type, dialect, data):
    values = data.draw(st.lists(st.none() | VALUES[data_type], min_size=1, max_size=15))
    kind = arrow_type(data_type)
    array = pa.array(values, kind)
    schema = pa.schema([("x", kind), ("y", pa.string())])
    batch = pa.record_batch([array, pa.array([None] * len(values), pa.string())], schema)
    lines = CsvEncoder(schema, dialect).encode(batch).to_pylist()
    text = b"".join(line if isinstance(line, bytes) else line.encode() for line in lines)

    decode = decoder(data_type, "string", dialect=dialect)
    read = io.BytesIO(text).read
    found = [decode(chunk).column(0) for chunk in Chunks(read, dialect, block_bytes=50)]
    assert as_bits(pa.concat_arrays(found)) == as_bits(array)


def as_bits(array):
    """The values, floats as their bits, so that NaN equals itself and -0 differs from 0."""
    if pa.types.is_floating(array.type):
        return [repr(value) for value in array.to_pylist()]
    if pa.types.is_date32(array.type):
        return array.cast(pa.int32()).to_pylist()
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.int64()).to_pylist()
    return array.to_pylist()
