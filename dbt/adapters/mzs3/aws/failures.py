"""What a failed request to AWS means to a user; runs on the driver and on executors alike."""

from __future__ import annotations

from botocore.exceptions import BotoCoreError, ClientError

DENIED_CODES = frozenset({"AccessDenied", "403", "Forbidden", "AllAccessDisabled"})
MISSING_CODES = frozenset({"404", "NoSuchKey", "NotFound", "NoSuchBucket", "NoSuchUpload"})

AwsFailure = (ClientError, BotoCoreError)
"""What boto3 raises: `except AwsFailure as exc`."""


def error_code(exc: Exception) -> str:
    """The code of AWS's answer such as `AccessDenied`, or the exception's class name."""
    if isinstance(exc, ClientError):
        return str(exc.response.get("Error", {}).get("Code", "Unknown"))
    return type(exc).__name__


def is_denied(exc: Exception) -> bool:
    """Whether AWS refused for want of a permission."""
    return error_code(exc) in DENIED_CODES


def is_missing(exc: Exception) -> bool:
    """Whether the bucket, key or upload does not exist."""
    return error_code(exc) in MISSING_CODES


def describe(exc: Exception, doing: str, permission: str | None = None) -> str:
    """One line: what was being done, what AWS said, which permission is missing.

    `doing` names the action and its object, such as "listing s3://bucket/prefix/".
    """
    code = error_code(exc)
    if isinstance(exc, ClientError):
        said = str(exc.response.get("Error", {}).get("Message", "")).strip() or "no message"
        text = f"{doing} failed: {code}: {said}"
    else:
        text = f"{doing} failed: {exc}"
    if code in DENIED_CODES and permission:
        text += f" (needs {permission})"
    if code in {"NoCredentialsError", "CredentialRetrievalError", "PartialCredentialsError"}:
        text += "; give keys under aws_connections in the profile, or set up boto3's own chain"
    return text
