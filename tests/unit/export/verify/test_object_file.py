"""An object as a file: what breaks is resumed, what was replaced is noticed."""

import io
from functools import partial

import pytest
from support.s3.readable import PREFIX, ReadableS3

from dbt.adapters.mzs3.export.verify_copy import ObjectFile
from dbt.adapters.mzs3.store import reader
from dbt.adapters.mzs3.store.failures import BrokenError, ReplacedError, WrongRangeError
from dbt.adapters.mzs3.store.reader import MAX_RESUMES

CONTENT = bytes(range(256)) * 4
KEY = PREFIX + "x"


@pytest.fixture
def s3(monkeypatch):
    monkeypatch.setattr(reader, "FIRST_PAUSE_S", 0)
    memory = ReadableS3()
    memory.objects[KEY] = CONTENT
    return memory


def opened(s3):
    return ObjectFile(s3.prefix, s3.listed("x"))


def test_reads_as_a_file_does(s3):
    file, plain = opened(s3), io.BytesIO(CONTENT)
    for step in (("read", 10), ("read", 3), ("seek", -20, 2), ("read", 50), ("read", 1)):
        assert getattr(file, step[0])(*step[1:]) == getattr(plain, step[0])(*step[1:])
    assert file.tell() == plain.tell()
    assert (file.seek(5), file.seek(5, 1), file.read()) == (5, 10, CONTENT[10:])


def test_one_request_for_a_whole_object_and_none_for_an_empty_one(s3):
    file = opened(s3)
    while file.read(7):
        pass
    assert s3.asked == ["bytes=0-1023"]
    s3.objects[KEY] = b""
    assert opened(s3).read(5) == b""
    assert len(s3.asked) == 1


def test_a_broken_connection_is_resumed_at_the_byte_reached(s3):
    s3.breaks[KEY] = [100, 0, 30]
    assert opened(s3).read(1000) == CONTENT[:1000]
    assert s3.asked == [f"bytes={start}-1023" for start in (0, 100, 100, 130)]


def test_only_so_often_without_progress(s3):
    s3.breaks[KEY] = [10] + [0] * (MAX_RESUMES + 1)
    file = opened(s3)
    with pytest.raises(BrokenError, match="ConnectionResetError"):
        file.read(100)
    assert len(s3.asked) == 1 + MAX_RESUMES
    assert isinstance(file.failure, BrokenError)


def test_a_replaced_object_is_noticed_also_by_a_store_without_conditions(s3):
    file = opened(s3)
    s3.objects[KEY] = CONTENT[::-1]
    get = s3.get_object
    s3.get_object = lambda *, IfMatch, **request: get(**request)
    with pytest.raises(ReplacedError):
        file.read(10)


def test_a_store_that_ignores_ranges_is_no_store_to_resume_from(s3):
    s3.breaks[KEY] = [100]
    s3.honours_range = False
    with pytest.raises(WrongRangeError, match="asked for it from byte 100 on"):
        opened(s3).read(1000)


def test_an_answer_that_is_too_short_is_no_end(s3):
    listed = s3.listed("x")
    s3.objects[KEY] = CONTENT[:1000]
    s3.get_object = partial(s3.get_object, IfMatch=None)
    s3.etag = lambda key: listed.etag
    file = ObjectFile(s3.prefix, listed)
    with pytest.raises((BrokenError, WrongRangeError)):
        file.read(1024)
