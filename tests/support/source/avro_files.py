"""Avro files, byte by byte, right ones and wrong ones."""

import io
import zlib

import fastavro

SYNC = b"0123456789abcdef"


def record(*types, **more):
    fields = [{"name": f"f{number}", "type": kind} for number, kind in enumerate(types)]
    return {"type": "record", "name": "row", "fields": fields, **more}


def file_of(schema, records, codec="null", **how) -> bytes:
    sink = io.BytesIO()
    fastavro.writer(sink, schema, records, codec, sync_marker=SYNC, **how)
    return sink.getvalue()


def blocks_of(schema, *blocks: tuple[int, bytes], codec: bytes = b"null") -> bytes:
    """A file with these blocks, of a number of records and their bytes."""
    empty = file_of(schema, []).replace(b"\x14avro.codec\x08null", b"\x14avro.codec%c%s" % (
        2 * len(codec), codec
    ))  # fmt: skip
    return empty + b"".join(number(n) + number(len(d)) + d + SYNC for n, d in blocks)


def number(value: int) -> bytes:
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, "long", value)
    return sink.getvalue()


ONE = record("string")
BAD_FILES = {
    "no file": b"id,note\n1,a\n",
    "another marker": file_of(ONE, [{"f0": "a"}])[:-1] + b"?",
    "no schema": b"Obj\x01\0" + SYNC,
    "two fields": file_of(ONE, []).replace(b"fields", b"fieldz"),
    "a count": file_of(ONE, []) + number(-1) + number(0) + SYNC,
    "a length": file_of(ONE, []) + number(1) + number(-1) + SYNC,
    "a number": file_of(ONE, []) + b"\xff" * 11,
    "more bytes": blocks_of(ONE, (1, number(1) + b"ab")),
    "deflate": blocks_of(ONE, (1, b"\xff\xff"), codec=b"deflate"),
    "records of nothing": blocks_of(ONE, (2**62, b"")),
    "half deflate": blocks_of(
        ONE, (1, zlib.compress(b"a" * 99, wbits=-15)[:-2]), codec=b"deflate"
    ),
}
