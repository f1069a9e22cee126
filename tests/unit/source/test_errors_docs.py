"""Every error of a source is in the docs in its own words, and a test reads every one there."""

import io
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from support.docs.errors import entries, is_read, page_text, texts_in_code
from support.s3.opened import bucket_of
from support.source.fields import parse, problem_of, text_of
from support.source.fields import purify_names as purify
from support.source.rejecting import read_all

from dbt.adapters.mzs3.formats.read import csv
from dbt.adapters.mzs3.formats.read.chunks import Chunk, RecordTooLarge
from dbt.adapters.mzs3.formats.read.compression import plain_reader
from dbt.adapters.mzs3.formats.read.format import Reading, too_many_rejects
from dbt.adapters.mzs3.source.executor.stored_object import ObjectReader
from dbt.adapters.mzs3.source.pinning import purify_now, require_agreement
from dbt.adapters.mzs3.source.purify import contradictions
from dbt.adapters.mzs3.source.tables import refused_name

FOUND = ("id", "amount")


def header(data: bytes, **reading: str) -> str:
    decoder = csv.CsvFormat("none", Reading(**reading)).decoder(FOUND, [])
    return text_of(lambda: decoder.begin(Chunk(data, 0, 1)))


def compressed(data: bytes, declared: str) -> str:
    read = io.BytesIO(data).read
    return text_of(lambda: plain_reader(read, "1.csv", declared, "utf-8")(100))


def pinned_as(definition):
    return purify(definition, FOUND)


ALIASES = [{"name": "a"}, {"name": "b"}]
PROBLEMS = {
    "key": lambda: text_of(lambda: parse(header_match="some")),
    "max_rejects": lambda: text_of(lambda: parse(on_bad_row="reject", max_rejects="5")),
    "max_rejects alone": lambda: text_of(lambda: parse(max_rejects=5)),
    "no header": lambda: text_of(
        lambda: parse(header=False, column_count=1, header_match="reorder")
    ),
    "encoding": lambda: text_of(lambda: parse(encoding="utf-7")),
    "delimiter": lambda: text_of(lambda: parse(delimiter='|"|')),
    "no object": lambda: text_of(lambda: purify(parse(), None)),
    "name": lambda: text_of(lambda: purify(parse(), ("id", "ID"))),
    "one name": lambda: text_of(lambda: purify(parse(), ("id", "\u0131d"))),
    "match": lambda: text_of(
        lambda: purify(parse(columns=ALIASES, header_match="subset"), ("x", "x"))
    ),
    "count": lambda: text_of(lambda: purify(parse(columns=ALIASES), ("x",))),
    "some": lambda: text_of(lambda: purify(parse(columns=[{"name": "id"}, {"name": "b"}]), FOUND)),
    "others": lambda: text_of(lambda: purify(parse(columns=[{"name": "id"}]), FOUND)),
    "which": lambda: text_of(
        lambda: purify(parse(columns=[{"name": "id"}], header_match="subset"), ("Id", "ID"))
    ),
    "record": lambda: text_of(
        lambda: purify(parse(columns=[{"name": "a", "data_type": "int"}]), ("1",))
    ),
    "pinned": lambda: contradictions(pinned_as(parse()), parse(encoding="cp1252"))[0],
    "changed": lambda: text_of(
        lambda: require_agreement(parse(delimiter=";"), pinned_as(parse()))
    ),
    "free name": lambda: text_of(
        lambda: purify_now(
            SimpleNamespace(
                definition=parse(header=["mz_problem"]), spark=SimpleNamespace(conf={})
            ),
            None,
        )
    ),
    "refused name": lambda: refused("or-ders"),
    "exact": lambda: header(b"id,price\n"),
    "any order": lambda: header(b"id,price\n", header_match="reorder"),
    "malformed": lambda: header(b'id,"price\n'),
    "invalid": lambda: compressed(b"id,amount\n", "zstd"),
    "early": lambda: compressed(b"BZh91AY&SY", "bzip2"),
    "is compressed": lambda: compressed(b"\x1f\x8b\x08" + b"\0" * 20, "none"),
    "replaced": lambda: answered('"e2"'),
    "range": lambda: answered('"e1"'),
    "ragged": lambda: problem_of(b"1\n", "int", "int")[2],
    "value": lambda: problem_of(b"x,1\n", "bigint", "int")[2],
    "quote": lambda: problem_of(b'5" pipe\n', "string")[2],
    "behind": lambda: problem_of(b'"a"b\n', "string")[2],
    "not closed": lambda: problem_of(b'"a\n', "string")[2],
    "return": lambda: problem_of(b"a\rb\n", "string")[2],
    "NUL": lambda: problem_of(b"a\0\n", "string")[2],
    "UTF-8": lambda: problem_of(b"\xff\n", "string")[2],
    "large": lambda: RecordTooLarge(Chunk(b"", 0, 1), 2**27).problem,
    "one unread": lambda: unread_one(),
    "many unread": lambda: unread_many(),
    "rejects": lambda: too_many_rejects("lake.orders", 3, "x").removeprefix("lake.orders: "),
    "a reject": lambda: too_many_rejects("lake.orders", 0, "x").removeprefix("lake.orders: "),
}


def refused(identifier: str) -> str:
    class Refused(PySparkException):
        def getCondition(self) -> str:
            return "INVALID_SCHEMA_OR_RELATION_NAME"

    return refused_name(Refused("`or-ders__lock`"), replace(parse(), identifier=identifier)) or ""


def answered(etag: str) -> str:
    """What is wrong with such an answer to a GET of bytes 5 to 8 of the object `e1`."""
    client: Any = SimpleNamespace(get_object=lambda **_: {"ETag": etag, "Body": io.BytesIO()})
    return text_of(
        lambda: ObjectReader(bucket_of(client, "b"), "k", "e1", byte_range=(5, 9)).read(4)
    )


def misreading(*ragged: Any) -> Any:
    """Parses text to no record, as if pyarrow's reader and ours disagreed, but for ragged ones."""

    def parse(_: bytes, __: Any, ___: Any, found: list[Any] | None = None) -> list[pa.Array]:
        if found is None:
            raise ValueError
        found += ragged
        return [pa.array([], pa.string())]

    return staticmethod(parse)


def unread_one() -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv, "convert_good", lambda text, kind: (text, None))
        patch.setattr(csv.CsvDecoder, "_parse", misreading(SimpleNamespace(number=1)))
        _, bad = read_all(b"a\n", "int")
    return bad[1].error


def unread_many() -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv.CsvDecoder, "_parse", misreading())
        return text_of(lambda: read_all(b"a\n", "int"))


@pytest.mark.parametrize("name", PROBLEMS)
def test_an_error_is_documented(name):
    text = PROBLEMS[name]()
    assert [entry for entry in entries() if entry.matches(text)], text


def test_every_text_of_an_error_in_the_code_is_documented():
    texts = dict(texts_in_code())
    assert len(texts) > 100
    assert {where: words for where, words in texts.items() if words not in page_text()} == {}


def test_every_documented_error_is_read_by_a_test():
    seen = [problem() for problem in PROBLEMS.values()]
    unread = [entry for entry in entries() if not is_read(entry)]
    assert [one.text for one in unread if not any(map(one.matches, seen))] == []


def test_every_documented_error_has_its_cause_and_its_way_out():
    assert [entry for entry in entries() if not entry.cause or not entry.way_out] == []
    assert len({entry.text for entry in entries()}) == len(entries())
