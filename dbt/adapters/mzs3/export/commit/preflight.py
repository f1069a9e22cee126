"""Checks a location before data is written, and recovers a commit that was interrupted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dbt.adapters.mzs3.errors import CopyError, LocationError, S3Error
from dbt.adapters.mzs3.export.commit.existing import (
    Existing,
    read_existing,
    require_empty,
    require_ours,
)
from dbt.adapters.mzs3.export.commit.failures import (
    CommitError,
    StaleFilesError,
    UnansweredError,
    describe_failure,
)
from dbt.adapters.mzs3.export.commit.intent import (
    COMMITTING,
    ChangedError,
    claimed_uploads,
    read_intent,
)
from dbt.adapters.mzs3.export.commit.manifest import MANIFEST
from dbt.adapters.mzs3.export.commit.protocol import Commit
from dbt.adapters.mzs3.export.options import CopyOptions
from dbt.adapters.mzs3.store.conditions import (
    known_conditional_writes,
    store_conditions,
    supports_atomic_conditional_delete,
)
from dbt.adapters.mzs3.store.failures import MissingError, StoreError, explained
from dbt.adapters.mzs3.store.prefix import Prefix, map_concurrently, probe_name
from dbt.adapters.mzs3.text import bulleted
from dbt.adapters.mzs3.upload.names import NO_NAMES, UsedNames
from dbt.adapters.mzs3.upload.reaper import PROBE_PART, UploadReaper, prove_writing
from dbt.adapters.mzs3.upload.spec import NOTE_PART, OpenUpload

# The most attempts at a recovery; each but the first follows a change by another run.
_RECOVERIES = 20


@dataclass(frozen=True)
class Preflight:
    """The state of a location that an export may write to.

    `existing` is the export to replace, or with `resume` one that is already complete. `finished`
    is a message if this run has completed an earlier commit. New files are numbered from
    `first_number`. `has_conditional_deletes` and `has_conditional_writes` are arguments of Commit.
    `reusable` has the open uploads that can be continued, by key, those with most parts first.
    `needs_sha256`: a run that continues this one could not tell parts by ETags, as under KMS.
    """

    reaper: UploadReaper
    existing: Existing | None = None
    finished: str | None = None
    first_number: int = 1
    has_conditional_deletes: bool = False
    has_conditional_writes: bool | None = None
    reusable: Mapping[str, Sequence[OpenUpload]] = field(default_factory=dict)
    needs_sha256: bool = False


def prepare(prefix: Prefix, options: CopyOptions) -> Preflight:
    """Recovers a commit that was interrupted, and checks that an export may write here. Raises
    LocationError if the location's content forbids that, S3Error, and CopyError."""
    on_existing, single_file = options.on_existing, options.single_file
    has_conditional_deletes = supports_atomic_conditional_delete(prefix)
    recovered = recover(prefix, has_conditional_deletes=has_conditional_deletes)
    existing = None
    if on_existing != "fail":
        _require_conditions(prefix, on_existing)
        existing = read_existing(prefix)
    elif recovered.finished is not None:
        raise LocationError(
            f"{recovered.finished}. This run has exported nothing; export to another location, or "
            "remove that export first"
        )
    if existing is None:
        require_empty(prefix, ignoring={prefix.key(COMMITTING)})
    elif on_existing == "overwrite":
        require_ours(prefix, existing)
        doing = f"deleting below {prefix.uri}, as on_existing: overwrite has to"
        with explained(doing, "s3:DeleteObject"):
            prefix.delete(prefix.key(probe_name()))  # no such object: tests the permission
    with prove_writing(prefix) as probe:
        reaper = UploadReaper(
            prefix,
            probe.upload_id,
            single_file=single_file,
            partition_by=options.partition_by,
            take_over=on_existing != "fail",
            claimed=claimed_uploads,
        )
    used = existing.used(recovered.used) if existing else recovered.used
    if single_file is not None and not used.allows([single_file]):
        raise LocationError(
            f"{prefix.uri}{single_file} may still be removed by a run that was taken for dead; "
            "choose another single_file, or another location. Or make sure that no run to this "
            "location is still going, nor one that hangs, and then remove "
            f"{prefix.uri}{COMMITTING}"
        )
    resumes = on_existing == "resume"
    return Preflight(
        reaper,
        existing,
        finished=recovered.finished,
        first_number=used.next_number,
        has_conditional_deletes=has_conditional_deletes,
        has_conditional_writes=True if on_existing != "fail" else known_conditional_writes(prefix),
        reusable=_reusable(prefix, reaper, probe.upload_id) if resumes else {},
        needs_sha256=resumes and probe.etag_if_equal(1, PROBE_PART) is None,
    )


def _require_conditions(prefix: Prefix, on_existing: str) -> None:
    """Raises LocationError for a store without conditional writes: two runs could both claim."""
    conditions = store_conditions(prefix)
    if not (conditions.creates and conditions.replaces):
        raise LocationError(
            f"the store of {prefix.uri} does not heed the conditions of writes (If-None-Match, "
            f"If-Match), without which two runs at once could mix their files: on_existing: "
            f"{on_existing} needs a store that does, such as Amazon S3. Here set on_existing to "
            f"fail, and export to a new location for each run, such as '{prefix.uri}' || mz_now()"
        )


def _reusable(prefix: Prefix, reaper: UploadReaper, probe: str) -> dict[str, list[OpenUpload]]:
    """The open uploads of interrupted runs that have a NOTE_PART, by key."""
    if reaper.unlisted is not None:
        raise S3Error(
            f"on_existing: resume needs s3:ListBucketMultipartUploads on {prefix.uri}, and a "
            "store that lists open uploads: it could not see what an interrupted run left open. "
            "Set on_existing to fail or overwrite to export without"
        )

    def with_parts(upload: tuple[str, str]) -> OpenUpload:
        """The upload with its parts in S3; without parts if it no longer exists."""
        doing = f"listing what is uploaded of {prefix.uri_of(upload[0])}"
        with explained(doing, "s3:ListMultipartUploadParts"):
            try:
                return OpenUpload(upload[1], prefix.store.parts(*upload))
            except MissingError:
                return OpenUpload(upload[1])

    ours = [(k, i) for k, i in reaper.found if i != probe and reaper.is_ours(k)]
    reusable: dict[str, list[OpenUpload]] = {}
    for (key, _), upload in zip(ours, map_concurrently(ours, with_parts), strict=True):
        if NOTE_PART in upload.parts:
            reusable.setdefault(key, []).append(upload)
    for uploads in reusable.values():
        uploads.sort(key=lambda upload: len(upload.parts), reverse=True)
    return reusable


@dataclass(frozen=True)
class Recovered:
    """The names that earlier runs have used, and a message if their commit was just completed."""

    used: UsedNames = NO_NAMES
    finished: str | None = None


def recover(prefix: Prefix, *, has_conditional_deletes: bool) -> Recovered:
    """Ends an interrupted commit, if there is one: rolls it forward if possible, else back.

    Raises CopyError if that fails, S3Error if the location can't be listed, and LocationError if
    other runs keep committing there.
    """
    with explained(f"listing {prefix.uri}", "s3:ListBucket"):
        intent_object = prefix.find(prefix.key(COMMITTING))
    if intent_object is None:
        return Recovered()
    finished: str | None = None
    for _ in range(_RECOVERIES):
        try:
            version = read_intent(prefix)
            if version is None:
                return Recovered(finished=finished)
            if version.intent.state == "closed":
                return Recovered(version.intent.used, finished)
            commit = Commit.from_intent(
                prefix, version, has_conditional_deletes=has_conditional_deletes
            )
            if commit.recover():
                rows = commit.pending.manifest["meta"]["record_count"]
                finished = (
                    f"the commit of an earlier run to {prefix.uri} had not come to its end; its "
                    f"export is complete now: {rows} rows, {prefix.uri}{MANIFEST}"
                )
        except ChangedError:
            continue
        except StaleFilesError as exc:
            raise CopyError(
                f"an earlier run's export to {prefix.uri} is whole, but it could not remove all "
                f"of the one before it, nor could this one, which has exported nothing: {exc}"
            ) from exc
        except CommitError as exc:
            raise CopyError(
                f"what an earlier run left at {prefix.uri} could not be removed:"
                f"{bulleted(exc.leftovers)}\nThe next run to this location tries again"
            ) from exc
        except (UnansweredError, CopyError, StoreError) as exc:
            doing = f"ending the commit of an earlier run at {prefix.uri}"
            raise CopyError(describe_failure(exc, doing)) from exc
        except ValueError as exc:
            raise CopyError(
                f"{prefix.uri}{COMMITTING} is not what an export to this location writes ({exc}). "
                "Use the version of dbt-mzs3, and the name of the bucket, that wrote it; remove "
                "it only if nothing has"
            ) from exc
    raise LocationError(
        f"other runs are committing to {prefix.uri} at this moment; give each model, and each "
        "run, a location of its own"
    )
