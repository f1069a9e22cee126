"""`_committing.json`: who commits to a location, and what; there while a commit is under way."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.mzs3.aws.failures import AwsFailure, error_code, is_missing
from dbt.adapters.mzs3.aws.location import S3Location
from dbt.adapters.mzs3.copy.commit.destination import COMMITTING
from dbt.adapters.mzs3.copy.commit.manifest import to_json
from dbt.adapters.mzs3.copy.commit.pending import PendingFile
from dbt.adapters.mzs3.errors import LocationError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_FORWARD = "committing"
_BACK = "taking back"
_TAKEN_CODES = ("PreconditionFailed", "412", "ConditionalRequestConflict")
_NO_CONDITIONS_CODES = ("NotImplemented", "501")


class Claim:
    """The pending set of one commit, written where only one run can have it at a time.

    Upload ids make the document of every run its own. A store without conditional writes lets
    two runs claim a location at once; the check of its contents afterwards is what is left there.
    """

    def __init__(
        self,
        client: S3Client,
        location: S3Location,
        files: Sequence[PendingFile],
        manifest: Mapping[str, Any],
    ) -> None:
        self._client = client
        self._location = location
        self.files = tuple(files)
        self.manifest = dict(manifest)

    @property
    def key(self) -> str:
        """The key of the claim's object."""
        return self._location.key(COMMITTING)

    def take(self) -> None:
        """Claim the location; raises LocationError if another run has it."""
        try:
            self._write(_FORWARD, IfNoneMatch="*")
        except AwsFailure as exc:
            if error_code(exc) in _NO_CONDITIONS_CODES:
                self._write(_FORWARD)
            elif error_code(exc) not in _TAKEN_CODES:
                raise
            elif not self.is_standing():  # else the answer was lost, and asked for again
                raise LocationError(
                    f"another run is committing an export to {self._location.uri} at this "
                    "moment; give each model, and each run, a location of its own"
                ) from exc

    def turn_back(self) -> None:
        """From here on the commit is to be taken back, by whoever finds the claim."""
        self._write(_BACK)

    def is_standing(self) -> bool:
        """Whether the claim is there, this run's, and not turned back; raises AwsFailure."""
        return self._read() == self._document(_FORWARD)

    def release(self) -> None:
        """Remove the claim; raises AwsFailure."""
        self._client.delete_object(Bucket=self._location.bucket, Key=self.key)

    def release_if_ours(self) -> None:
        """Remove the claim if it is this run's, standing or not; raises AwsFailure."""
        if self._read() in (self._document(_FORWARD), self._document(_BACK)):
            self.release()

    def _document(self, state: str) -> bytes:
        return to_json(
            {
                "state": state,
                "files": [file.as_dict() for file in self.files],
                "manifest": self.manifest,
            }
        )

    def _read(self) -> bytes | None:
        try:
            found = self._client.get_object(Bucket=self._location.bucket, Key=self.key)
        except AwsFailure as exc:
            if is_missing(exc):
                return None
            raise
        return found["Body"].read()

    def _write(self, state: str, **condition: str) -> None:
        put: Any = self._client.put_object
        put(
            Bucket=self._location.bucket,
            Key=self.key,
            Body=self._document(state),
            ContentType="application/json",
            **condition,
        )


def read_claim(client: S3Client, location: S3Location) -> tuple[Claim, bool]:
    """The claim that stands at a location, and whether its commit is still to go forward.

    Raises AwsFailure, or ValueError if the object is not what a commit writes.
    """
    found = client.get_object(Bucket=location.bucket, Key=location.key(COMMITTING))
    try:
        document = json.loads(found["Body"].read())
        files = [PendingFile.from_dict(file) for file in document["files"]]
        return Claim(client, location, files, document["manifest"]), document["state"] == _FORWARD
    except (KeyError, TypeError) as exc:
        raise ValueError(f"it lacks {exc}") from exc
