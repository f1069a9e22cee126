"""What a connection needs permissions for, what was tried of it, and what came out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Need:
    """An action; without the `essential` ones not even the plainest export or ingestion works.

    `used_for` says what else works with it, or what does not without.
    """

    action: str
    permission: str
    essential: bool
    used_for: str


LIST = Need("list", "s3:ListBucket", True, "every export, to see whether the location is empty")
OPEN = Need("open an upload", "s3:PutObject", True, "every export, to write its files")
ABORT = Need(
    "abort an upload",
    "s3:AbortMultipartUpload",
    True,
    "every export, as one that fails could not be cleaned up without it",
)
LIST_UPLOADS = Need(
    "list open uploads",
    "s3:ListBucketMultipartUploads",
    False,
    "on_existing: resume, and for aborting what lost tasks leave open; without it those uploads "
    "stay, which cost storage but are not visible",
)
LIST_PARTS = Need(
    "list the parts of an upload",
    "s3:ListMultipartUploadParts",
    False,
    "on_existing: resume, to send only what is missing",
)
PUT = Need("put an object", "s3:PutObject", True, "every export, to write its manifest")
GET = Need(
    "get an object",
    "s3:GetObject",
    False,
    "on_existing: overwrite and resume, and for finishing a commit that was interrupted; without "
    "it an interrupted export has to be removed by hand",
)
DELETE = Need(
    "delete an object",
    "s3:DeleteObject",
    False,
    "on_existing: overwrite, and for taking back a commit that failed; without it such an export "
    "has to be removed by hand, and each export leaves _committing.json beside its manifest",
)


@dataclass(frozen=True)
class Check:
    """A need that was tried; `problem` is None where it worked, else it says what and what for.

    `denied` is False for what failed for another reason than a permission, `tried` for what could
    not be tried, which `problem` explains.
    """

    need: Need
    problem: str | None = None
    denied: bool = False
    tried: bool = True

    @property
    def line(self) -> str:
        """One line for a user: `ok: …`, `DENIED: …`, `FAILED: …` or `not tried: …`."""
        what = f"{self.need.action} ({self.need.permission})"
        if self.problem is None:
            return f"ok: {what}"
        if not self.tried:
            return f"not tried: {what}, {self.problem}"
        return f"{'DENIED' if self.denied else 'FAILED'}: {what}; {self.problem}"

    @property
    def stops_all(self) -> bool:
        """Whether even the plainest export, or ingestion, would fail of it."""
        return self.need.essential and self.tried and self.problem is not None
