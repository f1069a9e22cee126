"""AWS connections as the profile declares them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from dbt.adapters.mzs3.options.option import option, read
from dbt.adapters.mzs3.options.values import Problems

DEFAULT_NAME = "default"
ADDRESSING_STYLES = ("auto", "path", "virtual")


# No error repeats a value: it may be a secret that was written under the wrong key.
def _text(value: Any) -> str:
    if not (stripped := str(value).strip()):
        raise ValueError("is empty; leave the key out or give it a value")
    if not stripped.isprintable():  # errors of Python's HTTP client repeat such a header
        raise ValueError("has a control character in it, such as a newline")
    return stripped


def _style(value: Any) -> str:
    if (style := _text(value)) not in ADDRESSING_STYLES:
        raise ValueError(f"must be one of {', '.join(ADDRESSING_STYLES)}")
    return style


def _flag(value: Any) -> bool:
    if (flag := _text(value).lower()) not in ("true", "false"):
        raise ValueError("must be true or false")
    return flag == "true"


def _role(value: Any) -> str:
    if not (role := _text(value)).startswith("arn:"):
        raise ValueError("must be an ARN, arn:aws:iam::…:role/…")
    return role


def _endpoint(value: Any) -> str:
    endpoint = _text(value)
    if any(sign in endpoint for sign in "@?#"):
        raise ValueError(
            "must be an address without a user, a password or parameters: keys belong under "
            "access_key_id and secret_access_key"
        )
    if not endpoint.startswith(("http://", "https://")):
        raise ValueError("must start with http:// or https://")
    if any(sign.isspace() for sign in endpoint):
        raise ValueError("has a space in it")
    try:
        port = urlsplit(endpoint).port
    except ValueError:
        port = 0
    if port == 0:
        raise ValueError("has a port that is none; a port is 1 to 65535")
    return endpoint


@dataclass(frozen=True)
class AwsConnection:
    """How to reach S3 and sign requests; immutable and picklable, its repr has no secret.

    The text below a field is its row in `docs/options.md`.
    """

    name: str = DEFAULT_NAME
    region: str | None = option(_text, None)
    """The AWS region."""
    endpoint: str | None = option(_endpoint, None)
    """The address of an S3-compatible store, `http://` or `https://`."""
    addressing_style: str = option(_style, "auto")
    """`auto`, `path` or `virtual`."""
    access_key_id: str | None = option(_text, None, secret=True)
    """The id of a key pair. Without one, boto3's credential chain is used where the work runs, on
    the driver and on each executor."""
    secret_access_key: str | None = option(_text, None, secret=True)
    """The secret of the key pair."""
    session_token: str | None = option(_text, None, secret=True)
    """Beside a key pair of temporary credentials."""
    assume_role_arn: str | None = option(_role, None)
    """A role that the key pair or the chain assumes; its credentials are renewed before they
    expire."""
    external_id: str | None = option(_text, None, secret=True)
    """The external ID with which the role is assumed."""
    requester_pays: bool = option(_flag, False)
    """Whether you pay for requests to buckets whose owner does not. S3 denies access to those
    otherwise."""

    def problems(self, given: Mapping[str, Any]) -> Iterator[str]:
        """A problem for each option that needs another one, if that is missing."""
        for first, second in (
            ("access_key_id", "secret_access_key"),
            ("secret_access_key", "access_key_id"),
            ("session_token", "access_key_id"),
            ("external_id", "assume_role_arn"),
        ):
            if first in given and second not in given:
                yield f"{first} needs {second} beside it"


def parse_connections(declared: Mapping[str, Any] | None) -> dict[str, AwsConnection]:
    """All declared connections by name, and always one named `default`. Raises ConfigError with
    all problems."""
    problems = Problems("aws_connections of the profile")
    connections = {DEFAULT_NAME: AwsConnection()}
    for name, values in (declared or {}).items():
        where = f"aws_connections.{name}"
        if not isinstance(values, Mapping):
            problems.found.append(f"{where} must be a mapping of keys such as region and endpoint")
            continue
        with problems.gathered():
            connections[name] = read(
                AwsConnection, values, where, of="aws_connections", within=f"{where}.", name=name
            )
    problems.raise_if_any()
    return connections
