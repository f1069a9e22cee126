"""What holds of whole batches: types, errors, buffers, pieces, pickling."""

import pickle
from datetime import timedelta

import pyarrow as pa
import pytest

from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.formats.dialect import CsvDialect
from dbt.adapters.mzs3.formats.write.csv.format import CsvEncoder
from dbt.adapters.mzs3.formats.write.format import in_pieces


def encoder_of(batch):
    return CsvEncoder(batch.schema, CsvDialect())


def test_unsupported_column_is_an_error_that_names_it():
    batch = pa.record_batch([pa.array([[{"a": 1, "b": timedelta(1)}]])], names=["records"])
    with pytest.raises(ExecutorError, match="column records: CSV has no text for values of type"):
        encoder_of(batch).encode(batch)


def test_the_data_buffer_is_the_file():
    batch = pa.record_batch([pa.array([1, 2]), pa.array(["a,b", None])], names=["n", "t"])
    lines = encoder_of(batch).encode(batch)
    assert (lines.type, lines.offset, lines.null_count) == (pa.large_string(), 0, 0)
    assert lines.buffers()[2].to_pybytes() == b'1,"a,b"\n2,\n'


def test_empty_batch_has_no_lines():
    schema = pa.schema([("n", pa.int32()), ("t", pa.string()), ("l", pa.list_(pa.binary()))])
    batch = pa.RecordBatch.from_pylist([], schema)
    assert encoder_of(batch).encode(batch).to_pylist() == []


def test_row_without_columns_is_an_empty_line():
    batch = pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))
    assert encoder_of(batch).encode(batch).to_pylist() == ["\n", "\n"]


def invalid_text():
    offsets = pa.array([0, 1, 3], pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"a\xc3\x28")])


@pytest.mark.parametrize("listed", [False, True])
def test_text_that_is_not_utf8_is_an_error_that_names_the_column(listed):
    text = invalid_text()
    column = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), text) if listed else text
    batch = pa.record_batch([column], names=["note"])
    with pytest.raises(ExecutorError, match=r"column note holds text that is not valid UTF-8"):
        encoder_of(batch).encode(batch)


def test_pieces_are_the_lines_of_the_whole_in_order(monkeypatch):
    monkeypatch.setattr("dbt.adapters.mzs3.formats.write.format.PIECE_BYTES", 100)
    texts = ["x" * (i % 40) for i in range(200)]
    batch = pa.record_batch([pa.array(range(200)), pa.array(texts)], names=["n", "t"])
    encoder = encoder_of(batch)
    pieces = [encoder.encode(rows) for rows in in_pieces(batch)]
    assert max(piece.get_total_buffer_size() for piece in pieces) < 1000
    lines = [line for piece in pieces for line in piece.to_pylist()]
    assert lines == encoder.encode(batch).to_pylist()


def test_row_larger_than_a_piece_stays_whole(monkeypatch):
    monkeypatch.setattr("dbt.adapters.mzs3.formats.write.format.PIECE_BYTES", 10)
    batch = pa.record_batch([pa.array(["a" * 100, "b" * 100])], names=["t"])
    pieces = [encoder_of(batch).encode(rows).to_pylist() for rows in in_pieces(batch)]
    assert pieces == [["a" * 100 + "\n"], ["b" * 100 + "\n"]]


def test_encoder_can_be_pickled():
    batch = pa.record_batch([pa.array([[0.5, None]])], names=["l"])
    encoder = CsvEncoder(batch.schema, CsvDialect(delimiter="|"), frozenset({"l"}))
    copy = pickle.loads(pickle.dumps(encoder))
    assert copy == encoder
    assert copy.encode(batch).to_pylist() == ['"{0.5,NULL}"\n']
