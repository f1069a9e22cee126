"""Small objects are fetched some at a time and read together, with the rows of each alone."""

import gzip
import threading
from contextlib import closing

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.s3.stored_objects import MemoryClient, stored
from support.source.fetched_objects import failure, fetching, listed, put, spec, written

from dbt.adapters.mzs3.formats.read.columns import Column
from dbt.adapters.mzs3.formats.read.csv import CsvFormat
from dbt.adapters.mzs3.formats.read.dialect import SourceDialect
from dbt.adapters.mzs3.formats.read.format import Reading
from dbt.adapters.mzs3.formats.read.object_error import ObjectError
from dbt.adapters.mzs3.source.executor import stored_object
from dbt.adapters.mzs3.source.executor.stored_object import object_groups

S = "string"
soup = st.lists(
    st.sampled_from(
        [b'"', b'"', b",", b",", b"\n", b"\n", b"\r\n", b"\r", b"a", b"1", b'""', b'"x\ny"', b"\0",
         b"\xff", "é".encode(), b"\xef\xbb\xbf", b"a,b\n", b"b,a\n", b"1,2\n", b'"1","2"\n']
    ),
    max_size=8,
).map(b"".join)  # fmt: skip
ORDERS = [None, ("a", "b")]


def alone(decoder, data):
    return [row for records in decoder(stored(data)) for row in records.batch.to_pylist()]


@given(st.lists(soup, min_size=2, max_size=4), st.sampled_from(ORDERS), st.integers(1, 2))
@example([b'1,"', b'2,"\n'], None, 2)
@example([b"1,2\r", b"3,4\n"], None, 2)
@example([b"1", b"2"], None, 1)
@example([b"\xef\xbb\xbf1\n", b"\xef\xbb\xbf2\n"], None, 1)
@example([b"\xef\xbb\xbf\xef\xbb\xbf1\n", b"\xef\xbb\xbf\xef\xbb\xbf2\n"], None, 1)
@example([b"a,b\n1,2\n", b"b,a\n1,2\n"], ("a", "b"), 2)
@example([b"a,b", b"a,b\r\n1,2\n", b"a,bc\n1,2\n"], ("a", "b"), 2)
@example([b"a,b\n1,2\n", b"a,b", b"b,a\n1,2\n"], ("a", "b"), 2)
@example([b"\n", b"\n"], None, 1)
def test_any_bytes_are_read_together_as_each_alone_or_not_at_all(texts, header, width):
    columns = [Column("a"), Column("b")][: width if header is None else 2]
    form = CsvFormat("none", Reading(header_match="reorder"), SourceDialect())
    together = form.decoder(header, columns).together([stored(text) for text in texts])
    if together is not None:
        batch, counts = together
        each = [alone(form.decoder(header, columns), text) for text in texts]
        assert batch.to_pylist() == [row for rows in each for row in rows]
        assert counts == [len(rows) for rows in each]


def rows_of(**changes):
    """What is written, and the same where no object counts as small."""
    together = written(**changes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_object, "SMALL_BYTES", -1)
        assert written(**changes) == together
    return [(row["_mz_object"][-5:], row["_mz_record"], row["id"]) for row in together]


def test_a_batch_has_the_rows_of_many_objects(s3):
    put(s3, "1.csv", b"id,amount\n1,a\n2,\n")
    put(s3, "2.csv", b'id,amount\n3,"x\ny"')
    put(s3, "3.csv", b"id,amount\n")
    put(s3, "4.csv", b"")
    put(s3, "5.csv", b'\xef\xbb\xbfid,amount\r\n4,"say ""x"""\r\n')
    (batch,) = fetching(spec())(iter(listed()))
    assert batch.num_rows == 4
    assert rows_of() == [("1.csv", 1, 1), ("1.csv", 2, 2), ("2.csv", 1, 3), ("5.csv", 1, 4)]


@pytest.mark.parametrize(
    "other",
    [b"id,amount\nx,a\n", b"amount,id\na,3\n", b"id,amount\n3,a\n4\n", b"id,b\n1,2\n", b'i"d\n'],
)
def test_an_object_that_is_not_right_leaves_the_others_as_they_are(s3, other):
    put(s3, "1.csv", b"id,amount\n1,a\n")
    put(s3, "2.csv", other)
    put(s3, "3.csv", b"id,amount\n2,b\n")
    how = Reading(header_match="reorder", on_bad_row="reject", on_header_mismatch="skip_object")
    found = [row for row in rows_of(reading=how) if row[2] is not None]
    assert found[0] == ("1.csv", 1, 1)
    assert found[-1] == ("3.csv", 1, 2)


def test_an_error_names_the_object_and_the_place(s3):
    put(s3, "1.csv", b"id,amount\n1,a\n")
    message = failure(s3, b"id,amount\n1,a\nx,b\n")
    assert "s3://acme-raw/orders/2.csv, line 3, byte 14: column id: 'x' is not a bigint" in message


def test_objects_in_other_encodings_and_compressions(s3):
    put(s3, "1.csv", "id,amount\n1,é\n".encode("utf-16"))
    put(s3, "2.csv", "id,amount\n2,é\n".encode("utf-16"))
    put(s3, "3.csv.gz", gzip.compress("id,amount\n3,é\n".encode("utf-16")))
    assert [row[2] for row in rows_of(reading=Reading(encoding="utf-16"))] == [1, 2, 3]


def test_few_objects_are_fetched_before_they_are_asked_for():
    large = stored(b"x" * (stored_object.SMALL_BYTES + 1))
    small = [stored(b"1\n") for _ in range(500)]
    # None is fetched that is not taken from here; how many of those are by now, threads decide.
    left = iter([*small[:3], large, *small[3:]])
    with closing(object_groups(left)) as groups:
        assert len(next(groups)) == 3
    assert len([*left]) >= 501 - 4 - 32


def test_large_objects_are_alone_and_are_not_fetched_ahead():
    client = MemoryClient(b"x" * (stored_object.SMALL_BYTES + 1))
    objects = [stored(b"1\n"), stored(b"2\n"), stored(client.data, client), stored(b"3\n")]
    assert [[one.size for one in group] for group in object_groups(objects)] == [
        [2, 2],
        [len(client.data)],
        [2],
    ]
    assert client.spans == []


def test_a_group_has_a_block_or_256_objects_at_most():
    objects = [stored(b"x" * stored_object.SMALL_BYTES) for _ in range(33)]
    assert [len(group) for group in object_groups(objects)] == [16, 16, 1]
    objects = [stored(b"1\n") for _ in range(300)]
    assert [len(group) for group in object_groups(objects)] == [256, 44]


def test_several_objects_are_on_their_way_at_a_time():
    both = threading.Barrier(2, timeout=60)

    class Waiting(MemoryClient):
        def get_object(self, **request):
            both.wait()
            return super().get_object(**request)

    one, other = (stored(b"1\n", Waiting(b"1\n")) for _ in range(2))
    ((first, second),) = object_groups([one, other])
    assert first.open().read(9) == second.open().read(9) == b"1\n"


def test_what_fetching_raised_is_raised_where_the_object_is_read():
    class Overwritten(MemoryClient):
        def get_object(self, **request):
            return {**super().get_object(**request), "ETag": '"e2"'}

    ((first, second),) = object_groups([stored(b"1\n"), stored(b"1\n", Overwritten(b"1\n"))])
    assert first.open().read(9) == b"1\n"
    with pytest.raises(ObjectError, match="replaced after it was listed"):
        second.open().read(9)


def test_a_held_object_has_parts():
    ((one,),) = object_groups([stored(b"0123456789")])
    assert one.part(2, 5) == b"234"
