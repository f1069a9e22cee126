"""A run of `copy_to_s3` without Spark: real preflight, commit and clean-up; made-up uploads."""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

from pyspark.sql import types as T

from dbt.adapters.mzs3.export import job
from dbt.adapters.mzs3.export.commit import intent, preflight
from dbt.adapters.mzs3.export.commit.preflight import Preflight, Recovered, prepare, recover
from dbt.adapters.mzs3.export.export import CopyResult, Export
from dbt.adapters.mzs3.export.options import CopyOptions, parse_options
from dbt.adapters.mzs3.store import prefix as objects_prefix
from dbt.adapters.mzs3.store.conditions import Conditions
from dbt.adapters.mzs3.store.failures import StoreError
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.prefix import Prefix
from dbt.adapters.mzs3.upload import pending
from dbt.adapters.mzs3.upload import reaper as upload_reaper
from dbt.adapters.mzs3.upload.job import Uploads
from dbt.adapters.mzs3.upload.pending import PendingFile
from dbt.adapters.mzs3.upload.spec import NOTE_PART, WriteSpec, note_of
from support.interleavings import Ask
from support.s3.model import Bucket, Client, etag_of

LOCATION = S3Location("b", "x/")
MANIFEST, COMMITTING = "x/_manifest.json", "x/_committing.json"
SCHEMA = T.StructType([T.StructField(name, T.StringType()) for name in ("a", "d")])
INVISIBLE = "Nothing of this export is visible"


@dataclass(frozen=True)
class Run:
    """One export: `name` is what its rows say, `folders` its partitions, one file in each part.

    `ids` tells it from another run of the same rows; of `same` folders and parts, all runs have
    the same rows.
    """

    name: str
    mode: str = "fail"
    parts: int = 2
    folders: tuple[str, ...] = ("",)
    options: Mapping[str, Any] = field(default_factory=dict)
    ids: str = ""
    same: tuple[str, ...] = ()

    def __call__(self, ask: Ask) -> CopyResult:
        prefix, export = _prefix(ask), self._export()
        _Ids.of(self.ids or self.name)
        preflight = self._prepared(prefix, export)
        run = job.ExportRun(export, self._frame(prefix), prefix, preflight, _QUIET, _QUIET)
        if self.mode == "resume" and preflight.existing is not None:
            return run.compare_with(preflight.existing)
        return _to_the_end(run)

    def begun(self, ask: Ask) -> Committing:
        """The run once it has uploaded its files; what is left of it is its commit."""
        prefix, export = _prefix(ask), self._export()
        _Ids.of(self.ids or self.name)
        preflight = self._prepared(prefix, export)
        uploads = _upload(self._frame(prefix), export.write_spec(preflight))
        return Committing(self, preflight, tuple(uploads.files))

    def _export(self) -> Export:
        config = {"location": "s3://b/x", "on_existing": self.mode, **self.options}
        nothing: Any = None
        return Export(
            node=self.name,
            schema=SCHEMA,
            options=_options(self.name, repr(config)),
            location=LOCATION,
            connection=nothing,
            as_of=int.from_bytes(self.name.encode(), "big"),
            full_refresh=False,
        )

    def _prepared(self, prefix: Prefix, export: Export) -> Preflight:
        preflight = prepare(prefix, export.options)
        export.check_kept_partitions(preflight)
        return preflight

    def _frame(self, prefix: Prefix, files: Sequence[PendingFile] | None = None) -> Any:
        client = prefix.store
        ordered = SimpleNamespace(sparkSession=_SESSION)
        return SimpleNamespace(run=self, client=client, files=files, ordered=ordered)


@dataclass(frozen=True)
class Committing:
    """A run that has begun: its commit, and its clean-up if that fails."""

    run: Run
    preflight: Preflight
    files: tuple[PendingFile, ...]

    def __call__(self, ask: Ask) -> CopyResult:
        prefix = _prefix(ask)
        _Ids.of(f"{self.run.ids or self.run.name}-")
        reaper = copy.copy(self.preflight.reaper)
        reaper._prefix = prefix
        preflight = replace(self.preflight, reaper=reaper)
        frame = self.run._frame(prefix, self.files)
        export = self.run._export()
        return _to_the_end(job.ExportRun(export, frame, prefix, preflight, _QUIET, _QUIET))


def _to_the_end(run: job.ExportRun) -> CopyResult:
    result = run.upload_and_commit()
    for clean_up in run.clean_ups():
        clean_up()
    return result


@dataclass(frozen=True)
class Expiring:
    """Aborts a run's first upload: as a lifecycle rule does, or another run's clean-up."""

    of: Committing

    def __call__(self, ask: Ask) -> None:
        file = self.of.files[0]
        with contextlib.suppress(StoreError):
            _prefix(ask).abort(file.key, file.upload_id)


def recovering(ask: Ask) -> Recovered:
    """The first thing that every run does: it ends what another has left."""
    _Ids.of("recovering")
    return recover(_prefix(ask), has_conditional_deletes=_Deletes.compared)


def reading(ask: Ask) -> str:
    """A reader who takes his time: the manifest now, its files later; the export that he saw.

    Where a file is missing, he reads the manifest again, which has to be another one then.
    """
    while True:
        manifest, _ = ask("get", MANIFEST)
        missing = [entry for entry in json.loads(manifest)["entries"] if not _is_read(ask, entry)]
        if not missing:
            return str(json.loads(manifest)["run_id"])
        assert ask("get", MANIFEST)[0] != manifest, f"the manifest still names {missing}"


def _is_read(ask: Ask, entry: Mapping[str, Any]) -> bool:
    key = entry["url"].removeprefix("s3://b/")
    try:
        body, _ = ask("get", key)
    except StoreError:
        return False
    is_it = etag_of(body) == entry["meta"]["sha256"]
    assert is_it or "part-" not in key, f"the reader finds another run's bytes in {key}"
    return True


def _prefix(ask: Ask) -> Prefix:
    return Prefix(Client(ask), LOCATION)


@functools.cache
def _options(name: str, config: str) -> CopyOptions:
    """Parsed once: a program is run again for each of its steps."""
    return parse_options(name, ast.literal_eval(config), ["default"])


class _Quiet:
    """Progress and watch of a run that nobody looks at."""

    target = None
    is_cancelled = False

    def note_committed(self, result: CopyResult) -> CopyResult:
        return result

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


_QUIET: Any = _Quiet()
_SESSION: Any = SimpleNamespace(conf=SimpleNamespace(get=lambda *_: "false"))


class _Deletes:
    """What a run that recovers knows of the store."""

    compared = True


class _Ids:
    """Ids that are the same whenever a program is run again."""

    _prefix = ""
    _count = 0

    @classmethod
    def of(cls, name: str) -> None:
        cls._prefix, cls._count = name, 0

    @classmethod
    def uuid4(cls) -> Any:
        cls._count += 1
        return SimpleNamespace(hex=f"{cls._prefix}{cls._count}")


def _upload(frame: Any, spec: WriteSpec, *_: Any, **__: Any) -> Uploads:
    """What the tasks of an export do: an upload for each file, which stays open."""
    if frame.files is not None:
        return Uploads(list(frame.files), counted_rows=len(frame.files))
    files = [
        _uploaded(frame.client, frame.run, spec, part, folder)
        for folder in frame.run.folders
        for part in range(frame.run.parts)
    ]
    return Uploads(files, counted_rows=len(files))


def _uploaded(client: Any, run: Run, spec: WriteSpec, part: int, folder: str) -> PendingFile:
    number = spec.first_number
    name = spec.single_file or f"{folder}part-{part:04d}-{number:04d}.csv"
    prefix = f"{folder}{part}"
    body = f"{'same' if prefix in run.same else run.name} {prefix}".encode()
    key = spec.location.key(name)
    etag, upload_id = etag_of(body), ""
    reusable = next(iter(spec.reusable.get(key, ())), None)
    if reusable is not None:
        upload_id = reusable.upload_id
    elif not spec.dry:
        upload_id = client.open_upload(key, {}).id
        if run.mode == "resume":
            _part(client, key, upload_id, NOTE_PART, note_of(spec.properties))
    if not spec.dry and (reusable is None or reusable.parts.get(1, ("",))[0] != etag):
        _part(client, key, upload_id, 1, body)
    return PendingFile(part, number, key, upload_id, (etag,), 1, len(body), etag, folder)


def _part(client: Any, key: str, upload_id: str, number: int, body: bytes) -> None:
    client.put_part(key, upload_id, number, body)


class _Inline:
    """An executor that does everything at once, in order: requests one at a time."""

    def __init__(self, *_: Any) -> None:
        pass

    def __enter__(self) -> _Inline:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, work: Any, *arguments: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(work(*arguments))
        except BaseException as exc:
            done.set_exception(exc)
        return done


@contextlib.contextmanager
def simulated(
    has_conditional_deletes: bool = True, has_conditional_writes: bool | None = None
) -> Iterator[None]:
    """The same requests in the same order whenever the answers are the same.

    `has_conditional_deletes` says whether the store compares before it deletes,
    `has_conditional_writes` whether earlier runs of the process have seen that it does before it
    writes.
    """
    _Deletes.compared = has_conditional_deletes
    with (
        mock.patch.object(objects_prefix, "ThreadPoolExecutor", _Inline),
        mock.patch.object(job, "ThreadPoolExecutor", _Inline),
        mock.patch.object(job, "upload_parts", _upload),
        mock.patch.object(job.engine, "has_running_tasks", lambda _: False),
        mock.patch.object(
            preflight, "supports_atomic_conditional_delete", lambda _: has_conditional_deletes
        ),
        mock.patch.object(preflight, "store_conditions", lambda _: Conditions(True, True)),
        mock.patch.object(preflight, "known_conditional_writes", lambda _: has_conditional_writes),
        mock.patch.object(intent, "record_conditional_writes", lambda *_: None),
        mock.patch.object(upload_reaper, "_QUIET_S", 0.0),
        mock.patch.object(upload_reaper, "_LOST_QUIET_S", 0.0),
        mock.patch.object(upload_reaper, "_PAUSE_S", 0.0),
        mock.patch.object(objects_prefix, "_PAUSE_S", 0.0),
        mock.patch.object(pending, "_PAUSES_S", ()),
        mock.patch("uuid.uuid4", _Ids.uuid4),
    ):
        yield


def named_by_manifest(bucket: Bucket) -> list[Mapping[str, Any]]:
    """What the manifest names: its entries, or none where there is no manifest."""
    manifest = bucket.read(MANIFEST)
    entries: Sequence[Mapping[str, Any]] = json.loads(manifest)["entries"] if manifest else []
    return entries


def require_readable(bucket: Bucket) -> None:
    """Whoever follows the manifest finds every file that it names, with the bytes it tells of."""
    for entry in named_by_manifest(bucket):
        key = entry["url"].removeprefix("s3://b/")
        body = bucket.read(key)
        assert body is not None, f"the manifest names {key}, which is not there"
        # S3 replaces a single file at once, before its manifest.
        numbered = "part-" in key
        is_it = etag_of(body) == entry["meta"]["sha256"]
        assert is_it or (is_committing(bucket) and not numbered), f"{key} is another run's"


def is_committing(bucket: Bucket) -> bool:
    """Whether a commit to the location has begun, and has not ended."""
    intent = bucket.read(COMMITTING)
    return intent is not None and json.loads(intent)["state"] != "closed"


def runs_in_manifest(bucket: Bucket) -> set[str]:
    """Whose rows a reader of the manifest sees: names of runs."""
    return {name_of(entry["meta"]["run_id"]) for entry in named_by_manifest(bucket)}


def name_of(run_id: str) -> str:
    """The run that has this id, of which `_Ids` made it."""
    return run_id.rstrip("0123456789").rstrip("-")
