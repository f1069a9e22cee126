"""AWS connections as the profile declares them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import urlsplit

from dbt.adapters.mzs3.errors import ConfigError

DEFAULT_NAME = "default"
ADDRESSING_STYLES = ("auto", "path", "virtual")


@dataclass(frozen=True)
class AwsConnection:
    """How to reach S3 and sign requests; immutable and picklable, its repr has no secret.

    The text below a field is its row in `docs/options.md`.
    """

    name: str = DEFAULT_NAME
    region: str | None = None
    """The AWS region."""
    endpoint: str | None = None
    """The address of an S3-compatible store, `http://` or `https://`."""
    addressing_style: str = "auto"
    """`auto`, `path` or `virtual`."""
    access_key_id: str | None = field(default=None, repr=False)
    """The id of a key pair. Without one, boto3's credential chain is used where the work runs, on
    the driver and on each executor."""
    secret_access_key: str | None = field(default=None, repr=False)
    """The secret of the key pair."""
    session_token: str | None = field(default=None, repr=False)
    """Beside a key pair of temporary credentials."""
    assume_role_arn: str | None = None
    """A role that the key pair or the chain assumes; its credentials are renewed before they
    expire."""
    external_id: str | None = field(default=None, repr=False)
    """The external ID with which the role is assumed."""
    requester_pays: bool = False
    """Whether you pay for requests to buckets whose owner does not. S3 denies access to those
    otherwise."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that are to be shown nowhere."""
        found = (getattr(self, each.name) for each in fields(self) if not each.repr)
        return tuple(value for value in found if value)


_PAYS = "requester_pays"
_KEYS = tuple(f.name for f in fields(AwsConnection) if f.name != "name")


def parse_connections(declared: Mapping[str, Any] | None) -> dict[str, AwsConnection]:
    """All declared connections by name, and always one named `default`.

    Raises ConfigError with all problems, which quote no value, as it may be a secret.
    """
    problems: list[str] = []
    connections = {DEFAULT_NAME: AwsConnection()}
    for name, values in (declared or {}).items():
        found = _problems_of(name, values)
        problems += found
        if not found:
            known: dict[str, Any] = {k: _text(v) for k, v in values.items() if v is not None}
            pays = known.pop(_PAYS, "false").lower() == "true"
            connections[name] = AwsConnection(name=name, requester_pays=pays, **known)
    if problems:
        raise ConfigError("aws_connections of the profile", problems)
    return connections


def _text(value: Any) -> str:
    return str(value).strip()


def _endpoint_problem(endpoint: str) -> str | None:
    if any(sign in endpoint for sign in "@?#"):
        return (
            "must be an address without a user, a password or parameters: keys belong under "
            "access_key_id and secret_access_key"
        )
    if not endpoint.startswith(("http://", "https://")):
        return "must start with http:// or https://"
    if any(sign.isspace() or not sign.isprintable() for sign in endpoint):
        return "has a space or a control character in it"
    if not _has_a_port_or_none(endpoint):
        return "has a port that is none; a port is 1 to 65535"
    return None


def _has_a_port_or_none(endpoint: str) -> bool:
    try:
        return urlsplit(endpoint).port != 0
    except ValueError:
        return False


def _problems_of(name: str, values: Any) -> list[str]:
    where = f"aws_connections.{name}"
    if not isinstance(values, Mapping):
        return [f"{where} must be a mapping of keys such as region and endpoint"]
    problems = [
        f"{where}.{key} is not a known key; known are {', '.join(_KEYS)}"
        for key in values
        if key not in _KEYS
    ]
    given = {key for key in _KEYS if values.get(key) not in (None, "")}
    for first, second in (
        ("access_key_id", "secret_access_key"),
        ("secret_access_key", "access_key_id"),
        ("session_token", "access_key_id"),
        ("external_id", "assume_role_arn"),
    ):
        if first in given and second not in given:
            problems.append(f"{where}.{first} needs {second} beside it")
    for key in _KEYS:
        if values.get(key) == "":
            problems.append(f"{where}.{key} is empty; leave the key out or give it a value")
    style = values.get("addressing_style", "auto")
    if style not in ADDRESSING_STYLES:
        problems.append(f"{where}.addressing_style must be one of {', '.join(ADDRESSING_STYLES)}")
    pays = values.get(_PAYS)
    if pays not in (None, "") and _text(pays).lower() not in ("true", "false"):
        problems.append(f"{where}.{_PAYS} must be true or false")
    endpoint = values.get("endpoint")
    if endpoint and (problem := _endpoint_problem(_text(endpoint))):
        problems.append(f"{where}.endpoint {problem}")
    role = values.get("assume_role_arn")
    if role and not _text(role).startswith("arn:"):
        problems.append(f"{where}.assume_role_arn must be an ARN, arn:aws:iam::…:role/…")
    return problems
