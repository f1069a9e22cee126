"""Compares every object that a manifest names with its entry in the manifest."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa

from dbt.adapters.mzs3.arrow.parquet import RandomAccessFile
from dbt.adapters.mzs3.errors import LocationError
from dbt.adapters.mzs3.export.commit.existing import Existing, read_existing, unlisted_objects
from dbt.adapters.mzs3.export.commit.intent import COMMITTING, read_intent
from dbt.adapters.mzs3.export.commit.manifest import MANIFEST
from dbt.adapters.mzs3.formats.write import FORMATS
from dbt.adapters.mzs3.formats.write.format import ExportFormat
from dbt.adapters.mzs3.options.option import convert
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.failures import (
    MissingError,
    PreconditionFailedError,
    StoreError,
    describe,
    explained,
)
from dbt.adapters.mzs3.store.location import named_target
from dbt.adapters.mzs3.store.opened import open_store
from dbt.adapters.mzs3.store.prefix import Prefix
from dbt.adapters.mzs3.store.reader import ObjectStream
from dbt.adapters.mzs3.store.store import ListedObject
from dbt.adapters.mzs3.text import bytes_text, count_noun

_THREADS = 8
CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Verification:
    """The result of a verification. The totals add up the manifest's entries.

    `problems` are lines, each about one object; `unlisted` are the URIs of objects that are not in
    the export, but that readers of the whole location would read, too.
    """

    uri: str
    files: int
    rows: int
    bytes: int
    problems: tuple[str, ...]
    unlisted: tuple[str, ...]

    @property
    def summary(self) -> str:
        """One line: the totals, and whether there are problems."""
        files, rows = count_noun(self.files, "file"), count_noun(self.rows, "row")
        found = "all as the manifest says"
        if self.problems:
            found = count_noun(len(self.problems), "problem")
        return f"{self.uri}: {files}, {rows}, {bytes_text(self.bytes)}: {found}"


def verify_copy(
    connections: Mapping[str, AwsConnection], name: str, location: str | None
) -> Verification:
    """Verifies the export at `location`, a literal `s3://…`, which may be its manifest's URI.

    Raises ConfigError with the problems of connection and location, LocationError if there is no
    manifest that dbt-mzs3 wrote, and S3Error if it can't be read.
    """
    connection, named = named_target("verify_copy", connections, name, location)
    above, _, last = named.prefix.rstrip("/").rpartition("/")
    if last == MANIFEST:  # users may copy its URI from dbt's response
        named = replace(named, prefix=f"{above}/" if above else "")
    return verify(Prefix(open_store(connection, named), named))


def verify(prefix: Prefix) -> Verification:
    """Verifies the export at the prefix; reads each object once, and several at a time."""
    uri = f"{prefix.uri}{MANIFEST}"
    existing = _export_at(prefix, uri)
    entries = _entries(uri, existing)
    with explained(f"listing {prefix.uri}", "s3:ListBucket"):
        objects = list(prefix.objects())
    listed = {found.key: found for found in objects}
    unlisted = map(prefix.uri_of, unlisted_objects(prefix, existing, objects))

    def check(entry: Entry) -> list[str]:
        found = _differences(prefix, entry, listed.get(prefix.key(entry.name)))
        return [f"{prefix.uri}{entry.name}: {problem}" for problem in found]

    with ThreadPoolExecutor(_THREADS) as pool:
        # After an interrupt, or if a check raises, `map` cancels checks that have not begun.
        problems = [problem for found in pool.map(check, entries) for problem in found]
    with explained(f"listing {prefix.uri}", "s3:ListBucket"):
        etag = prefix.etag(prefix.key(MANIFEST))
    if etag != existing.etag:
        raise LocationError(f"{uri} was replaced while its files were read; verify again")
    rows, size = sum(e.rows for e in entries), sum(e.bytes for e in entries)
    totals = {"content_length": size, "record_count": rows}
    if existing.manifest.get("meta") != totals:
        problems.append(
            f"{uri}: totals: its files add up to {totals}, it says {existing.manifest.get('meta')}"
        )
    return Verification(prefix.uri, len(entries), rows, size, tuple(problems), tuple(unlisted))


def _export_at(prefix: Prefix, uri: str) -> Existing:
    try:
        existing = read_existing(prefix)
    except LocationError as exc:
        raise LocationError(
            f"{uri} is not a manifest that dbt-mzs3 writes ({exc.__cause__}), so there is nothing "
            "to compare the files with"
        ) from exc
    if existing is not None:
        return existing
    hint = ""
    with explained(f"listing {prefix.uri}", "s3:ListBucket"):
        has_intent = prefix.find(prefix.key(COMMITTING)) is not None
    if has_intent and not _is_closed(prefix):
        hint = (
            f". {COMMITTING} is there: an export is being committed, or was cut off while it "
            "was; then its next run finishes it"
        )
    raise LocationError(f"there is no {uri}: no export to {prefix.uri} has been committed{hint}")


def _is_closed(prefix: Prefix) -> bool:
    """Whether the intent at the location is closed, or was removed; False if it can't be read."""
    with contextlib.suppress(ValueError, StoreError):
        version = read_intent(prefix)
        return version is None or version.intent.state == "closed"
    return False


def _entries(uri: str, existing: Existing) -> list[Entry]:
    """Parses the entries of the manifest at `uri`; raises LocationError."""
    try:
        options = existing.manifest.get("options", {})
        problems: list[str] = []
        kind = FORMATS[options.get("format", next(iter(FORMATS)))]
        file_format = convert(kind, options, problems)
        if problems:
            raise ValueError("; ".join(problems))
        return [
            Entry(
                name,
                # `of_file` derives the compression from the name: kept partitions may differ.
                file_format if name == options.get("single_file") else file_format.of_file(name),
                int(entry["meta"]["content_length"]),
                int(entry["meta"]["record_count"]),
                str(entry["meta"]["sha256"]),
            )
            for name, entry in existing.entries.items()
        ]
    except (KeyError, TypeError, AttributeError, ValueError) as exc:
        raise LocationError(
            f"{uri} lacks what dbt-mzs3 writes of each file ({exc}): something else wrote or "
            "changed it. Export again"
        ) from exc


@dataclass(frozen=True)
class Entry:
    """A file's entry in the manifest; `name` is relative to the location."""

    name: str
    format: ExportFormat
    bytes: int
    rows: int
    sha256: str


def _differences(prefix: Prefix, entry: Entry, listed: ListedObject | None) -> Iterator[str]:
    """The differences of an object from its entry, or why they are unknown, as texts."""
    if listed is None:
        yield f"expected {entry.bytes} bytes, {entry.rows} rows; found no object"
        return
    if listed.size != entry.bytes:
        yield f"size: expected {entry.bytes} bytes, found {listed.size}"
    file = ObjectFile(prefix, listed)
    try:
        found = content_of(file, entry.format)
    except PreconditionFailedError:
        yield "it was replaced while it was read; verify again"
    except MissingError:
        yield "it was removed while it was read; verify again"
    except StoreError as exc:
        yield describe(exc, "reading it", "s3:GetObject")
    else:
        if found.sha256 != entry.sha256:
            yield f"SHA-256: expected {entry.sha256}, found {found.sha256}"
        if found.rows != entry.rows:
            yield f"rows: expected {entry.rows}, found {found.problem or found.rows}"
    finally:
        file.close()


class Content(NamedTuple):
    """An object's hash and number of rows. If `rows` is None, `problem` says why."""

    sha256: str
    rows: int | None
    problem: str | None


def content_of(file: ObjectFile, file_format: ExportFormat) -> Content:
    """Hashes the object and counts its rows, reading it once, in chunks; raises StoreError."""
    rows = problem = None
    try:
        rows = file_format.count_rows(pa.PythonFile(file, mode="r"))
    except (OSError, pa.ArrowException, ValueError) as exc:
        if file.failure is not None:
            raise file.failure from exc
        problem = f"none that can be counted: {exc}"
    return Content(file.sha256(), rows, problem)


class ObjectFile(RandomAccessFile):
    """The listed version of an object as a file; consecutive reads share one GET.

    Reading raises what ObjectStream raises.
    """

    def __init__(self, prefix: Prefix, listed: ListedObject) -> None:
        super().__init__(listed.size, self._stream_range)
        byte_range = (0, listed.size)
        self._stream = ObjectStream(prefix.store, listed.key, listed.etag, byte_range=byte_range)
        self._hash = hashlib.sha256()
        self._hashed = 0

    def sha256(self) -> str:
        """The hash of the whole object; reads all bytes that are not hashed yet."""
        self.seek(self._hashed)
        while self.read(CHUNK_BYTES):
            pass
        return self._hash.hexdigest()

    def close(self) -> None:
        """Returns the connection to the pool; the next read opens another."""
        self._stream.close()

    def _stream_range(self, start: int, end: int) -> bytes:
        if self._stream.position != start:
            self._stream.close()
            self._stream.position = start
        pieces = []
        while self._stream.position < end:
            pieces.append(self._stream.read(end - self._stream.position))
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if start == self._hashed:
            self._hash.update(data)
            self._hashed = end
        return data
