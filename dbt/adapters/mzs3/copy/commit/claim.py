"""`_committing.json`: who commits to a location, and what; there while a commit is under way."""

from __future__ import annotations

import json

from dbt.adapters.mzs3.aws.failures import AwsFailure, error_code
from dbt.adapters.mzs3.copy.commit.manifest import to_json
from dbt.adapters.mzs3.copy.commit.pending import PendingExport
from dbt.adapters.mzs3.copy.commit.place import COMMITTING, Place
from dbt.adapters.mzs3.errors import LocationError

_FORWARD = "committing"
_BACK = "taking back"
TAKEN_CODES = ("PreconditionFailed", "412", "ConditionalRequestConflict")
NO_CONDITIONS_CODES = ("NotImplemented", "501")


class Claim:
    """The pending export of one commit, written where only one run can have it at a time.

    Upload ids make the document of every run its own. A store without conditional writes lets
    two runs claim a location at once; the check of its contents afterwards is what is left there.
    """

    def __init__(self, place: Place, pending: PendingExport) -> None:
        self._place = place
        self.pending = pending

    @property
    def key(self) -> str:
        """The key of the claim's object."""
        return self._place.key(COMMITTING)

    def take(self) -> None:
        """Claim the location; raises LocationError if another run has it."""
        try:
            self._write(_FORWARD, IfNoneMatch="*")
        except AwsFailure as exc:
            if error_code(exc) in NO_CONDITIONS_CODES:
                self._write(_FORWARD)
            elif error_code(exc) not in TAKEN_CODES:
                raise
            elif not self.is_standing():  # else the answer was lost, and asked for again
                raise LocationError(
                    f"another run is committing an export to {self._place.uri} at this "
                    "moment; give each model, and each run, a location of its own"
                ) from exc

    def turn_back(self) -> None:
        """From here on the commit is to be taken back, by whoever finds the claim."""
        self._write(_BACK)

    def is_standing(self) -> bool:
        """Whether the claim is there, this run's, and not turned back; raises AwsFailure."""
        return self._place.read(COMMITTING) == self._document(_FORWARD)

    def release(self) -> None:
        """Remove the claim; raises AwsFailure."""
        self._place.delete(self.key)

    def release_if_ours(self) -> None:
        """Remove the claim if it is this run's, standing or not; raises AwsFailure."""
        ours = (self._document(_FORWARD), self._document(_BACK))
        if self._place.read(COMMITTING) in ours:
            self.release()

    def is_others(self) -> bool:
        """Whether there is a claim of another run, or none; False where it can't be read."""
        try:
            found = self._place.read(COMMITTING)
        except AwsFailure:
            return False
        return found not in (self._document(_FORWARD), self._document(_BACK))

    def release_unless_others(self) -> None:
        """Remove the claim; needs no right to read. Raises AwsFailure."""
        if not self.is_others():
            self.release()

    def _document(self, state: str) -> bytes:
        return to_json({"state": state, **self.pending.as_dict()})

    def _write(self, state: str, **condition: str) -> None:
        self._place.write(COMMITTING, self._document(state), **condition)


def _require_keys_below(place: Place, pending: PendingExport) -> None:
    """Raises ValueError for a claim of another location, which somebody has copied here."""
    keys = [*(file.key for file in pending.files), *pending.stale]
    urls = [str(entry["url"]) for entry in pending.manifest["entries"]]
    if not all(key.startswith(place.location.prefix) for key in keys) or not all(
        url.startswith(place.uri) for url in urls
    ):
        raise ValueError("it names files elsewhere")


def read_claim(place: Place) -> tuple[Claim, bool] | None:
    """The claim that stands at a location, and whether its commit is still to go forward.

    None if there is none. Raises AwsFailure, or ValueError if it is not what a commit writes.
    """
    found = place.read(COMMITTING)
    if found is None:
        return None
    try:
        document = json.loads(found)
        pending = PendingExport.from_dict(document)
        _require_keys_below(place, pending)
        return Claim(place, pending), document["state"] == _FORWARD
    except (KeyError, TypeError) as exc:
        raise ValueError(f"it lacks {exc}") from exc
