"""The errors of this package, all Mzs3Errors; the classes that dbt calls convert them to dbt's."""

from __future__ import annotations

import json
from collections.abc import Sequence

from dbt.adapters.mzs3.secrets import hide_logins
from dbt.adapters.mzs3.text import bulleted, count_noun


class Mzs3Error(Exception):
    """An error for users; the text says what is wrong, where, and what to do next."""


class ConfigError(Mzs3Error):
    """All problems of the configuration of a model, a source or an operation.

    Users and passwords in quoted URLs are hidden.
    """

    def __init__(self, subject: str, problems: Sequence[str]) -> None:
        self.subject = subject
        self.problems = tuple(map(hide_logins, problems))
        count = count_noun(len(self.problems), "problem")
        super().__init__(f"{subject} has {count} in its configuration:{bulleted(self.problems)}")


class S3Error(Mzs3Error):
    """A request to S3, SQS or STS failed; the text has the action, its object, the permission."""


class LocationError(Mzs3Error):
    """An export can't use its location: it is not empty, or another run uses it, for example."""


class CopyError(Mzs3Error):
    """An export failed; the text says whether anything is left at the location."""


class SourceError(Mzs3Error):
    """A source is in error; the text names the object, the line and the byte, if there are any.

    `s3_object` is the URI of the object that the ledger records as failed, if there is one.
    """

    def __init__(self, message: str, s3_object: str | None = None) -> None:
        self.s3_object = s3_object
        super().__init__(message)


class ShardError(Mzs3Error):
    """A shard can't be read or changed as requested; the text says why."""


class SparkJobError(Mzs3Error):
    """Spark failed, or can't run the work. Users and passwords in the URLs of the message are
    hidden."""

    def __init__(self, message: str) -> None:
        super().__init__(hide_logins(message))


class ExecutorError(Mzs3Error):
    """An error that is raised on an executor and shown to users by the driver.

    Spark sends the driver a text with tracebacks, so the error is a JSON document between marks,
    which `spark.failure.executor_error` parses. The driver shows only `message`. `cause` is for
    code that handles the error; `s3_object` is the URI of the wrong object.
    """

    def __init__(self, message: str, cause: str = "", s3_object: str | None = None) -> None:
        self.message = message
        self.cause = cause
        self.s3_object = s3_object
        document = {"message": message, "cause": cause, "s3_object": s3_object}
        # Escapes `<`, so that a message that quotes an object can't contain the end mark.
        marked = json.dumps(document).replace("<", "\\u003c")
        super().__init__(f"{MARK_BEGIN}{marked}{MARK_END}")


MARK_BEGIN = "<mzs3-error>"
MARK_END = "</mzs3-error>"
