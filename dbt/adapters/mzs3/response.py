"""What an operation tells dbt; its fields arrive in `adapter_response` of run_results.json."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.contracts.connection import AdapterResponse


@dataclass
class CopyResponse(AdapterResponse):
    """An export that is committed: the log shows `COPY n`, n the rows in S3.

    `location` and `manifest` are S3 URIs, `as_of` is the run's start in ms since the epoch.
    """

    location: str | None = None
    manifest: str | None = None
    files_written: int | None = None
    bytes_written: int | None = None
    as_of: int | None = None


def copy_response(
    *, rows: int, location: str, manifest: str, files: int, bytes_written: int, as_of: int
) -> CopyResponse:
    """The response to a committed export."""
    return CopyResponse(
        _message=f"COPY {rows}",
        code="COPY",
        rows_affected=rows,
        location=location,
        manifest=manifest,
        files_written=files,
        bytes_written=bytes_written,
        as_of=as_of,
    )
