"""The manifest has the form that Redshift documents (UNLOAD, MANIFEST; COPY, manifests)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import types as T
from support.export.committing import export_of

from dbt.adapters.mzs3.export.commit.manifest import to_json
from dbt.adapters.mzs3.export.export import build_manifest
from dbt.adapters.mzs3.export.options import parse_options
from dbt.adapters.mzs3.formats.write import FORMATS
from dbt.adapters.mzs3.upload.pending import PendingFile

# A type, a pattern, a set of values, a list of one form, or a mapping; `?` marks optional keys.
# Keys that are not here are ours, and may not be among those that Redshift reads.
COUNT = int
OBJECT_URL = re.compile(r"s3://[a-z0-9][a-z0-9.-]+/.*[^/]")
REDSHIFT_TYPES = {
    "bigint",
    "binary varying",
    "boolean",
    "character",
    "character varying",
    "date",
    "double precision",
    "integer",
    "numeric",
    "real",
    "smallint",
    "super",
    "time without time zone",
    "timestamp with time zone",
    "timestamp without time zone",
}
FOR_COPY = {"entries": [{"url": OBJECT_URL, "mandatory?": bool}]}
# Spectrum, and COPY of Parquet, need the size of each file too.
FOR_PARQUET = {"entries": [{"url": OBJECT_URL, "meta": {"content_length": COUNT}}]}
VERBOSE = {
    "entries": [
        {"url": OBJECT_URL, "meta": {"content_length": COUNT, "record_count": COUNT}},
    ],
    "schema": {
        "elements": [
            {
                "name": str,
                "type": {
                    "base": REDSHIFT_TYPES,
                    "precision?": COUNT,
                    "scale?": COUNT,
                    "max_length?": COUNT,
                },
            }
        ]
    },
    "meta": {"content_length": COUNT, "record_count": COUNT},
    "author": {"name": str, "version": str},
}
FORMS = {"COPY": FOR_COPY, "COPY of Parquet": FOR_PARQUET, "UNLOAD, VERBOSE": VERBOSE}


def differences(value: Any, form: Any, where: str = "manifest") -> Iterator[str]:
    """What is not of the form, each with its place."""
    if isinstance(form, dict) and isinstance(value, dict):
        for key, inner in form.items():
            name = key.removesuffix("?")
            if name in value:
                yield from differences(value[name], inner, f"{where}.{name}")
            elif name == key:
                yield f"{where} lacks {key}"
    elif isinstance(form, list) and isinstance(value, list):
        for index, item in enumerate(value):
            yield from differences(item, form[0], f"{where}[{index}]")
    elif isinstance(form, set):
        if value not in form:
            yield f"{where} is {value!r}"
    elif isinstance(form, re.Pattern):
        if not (isinstance(value, str) and form.fullmatch(value)):
            yield f"{where} is {value!r}"
    elif not isinstance(form, type) or type(value) is not form or (form is int and value < 0):
        yield f"{where} is {value!r}"


SCHEMA = T.StructType(
    [
        T.StructField("a", T.BooleanType()),
        T.StructField("b", T.ByteType()),
        T.StructField("c", T.ShortType()),
        T.StructField("d", T.IntegerType()),
        T.StructField("e", T.LongType()),
        T.StructField("f", T.FloatType()),
        T.StructField("g", T.DoubleType()),
        T.StructField("h", T.DecimalType(38, 10)),
        T.StructField("i", T.StringType()),
        T.StructField("j", T.BinaryType()),
        T.StructField("k", T.DateType()),
        T.StructField("l", T.TimestampType()),
        T.StructField("m", T.TimestampNTZType()),
        T.StructField("n", T.ArrayType(T.IntegerType())),
        T.StructField("o", T.MapType(T.StringType(), T.LongType())),
        T.StructField("p", T.StructType([T.StructField("q", T.LongType())])),
        T.StructField("r", T.DayTimeIntervalType()),
        T.StructField("s", T.VariantType()),
        T.StructField('a name, "odd"\n', T.NullType()),
    ]
)
EXPORTS: dict[str, tuple[str, dict[str, Any]]] = {
    "CSV": ("part-{:04d}-0001.csv", {"header": True}),
    "partitioned": ("c={}/d=%C3%A9 x/part-0000-0001.csv", {"partition_by": ["c", "d"]}),
    "a single file": ("all.csv", {"single_file": "all.csv"}),
}
for name, each in FORMATS.items():
    for compression, file_type in each.file_types.items():
        EXPORTS[f"{name} {compression}"] = (
            f"c=__HIVE_DEFAULT_PARTITION__/part-{{:04d}}-0001{file_type.suffix}",
            {"format": name, "compression": compression, "partition_by": ["c"]},
        )


def manifest(name: str, files: int = 3) -> dict[str, Any]:
    """A manifest as a reader gets it: from JSON."""
    pattern, options = EXPORTS[name]
    keys = sorted({"exports/é/" + pattern.format(number) for number in range(files)})
    pending = [
        PendingFile(i, 1, key, "id", ("etag",), 10 * i, 100 * i, "f" * 64)
        for i, key in enumerate(keys)
    ]
    config = {"location": "s3://acme/exports/é", **options}
    parsed = parse_options("model.p.m", config, ["default"])
    built = build_manifest(export_of("acme", "exports/é/", parsed, SCHEMA), pending, "r")
    return dict(json.loads(to_json(built)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", EXPORTS)
def test_a_manifest_has_the_form(name: str, form: str) -> None:
    assert list(differences(manifest(name), FORMS[form])) == []


@pytest.mark.parametrize("name", EXPORTS)
def test_every_file_has_to_be_there(name: str) -> None:
    assert [entry["mandatory"] for entry in manifest(name)["entries"]] != []
    assert all(entry["mandatory"] is True for entry in manifest(name)["entries"])


def test_numbers_of_digits_are_with_numeric_alone() -> None:
    types = [element["type"] for element in manifest("CSV")["schema"]["elements"]]
    assert {"base": "numeric", "precision": 38, "scale": 10} in types
    assert all(set(kind) == {"base"} for kind in types if kind["base"] != "numeric")


def test_what_is_ours_is_beside_what_redshift_knows() -> None:
    written = manifest("CSV")
    known = VERBOSE["entries"][0] | FOR_COPY["entries"][0]  # type: ignore[index]
    assert set(written) - set(VERBOSE) == {
        "model",
        "run_id",
        "as_of",
        "options",
        "first_number",
        "next_number",
    }
    (extra,) = {frozenset(set(entry["meta"]) - set(known["meta"])) for entry in written["entries"]}
    assert extra == {"sha256", "run_id"}
    assert {key for e in written["schema"]["elements"] for key in e} == {
        "name",
        "type",
        "spark_type",
    }


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda m: m["entries"][1].pop("url"), "manifest.entries[1] lacks url"),
        (lambda m: m["entries"][0].update(url="s3://acme/x/"), "manifest.entries[0].url is"),
        (lambda m: m["entries"][0]["meta"].update(content_length="1"), "content_length is '1'"),
        (lambda m: m["meta"].update(record_count=True), "manifest.meta.record_count is True"),
        (lambda m: m["schema"]["elements"][0]["type"].update(base="int8"), "base is 'int8'"),
        (lambda m: m.update(schema=[]), "manifest.schema is []"),
    ],
)
def test_the_check_can_fail(change: Any, found: str) -> None:
    written = manifest("CSV")
    change(written)
    (difference,) = differences(written, VERBOSE)
    assert found in difference
