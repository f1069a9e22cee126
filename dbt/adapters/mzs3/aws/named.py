"""A connection and a location as users name them, in a config or as arguments."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.aws.location import SCHEME, S3Location, parse_location
from dbt.adapters.mzs3.errors import ConfigError


def unknown_connection(key: str, name: str, known: Collection[str]) -> str:
    """What is wrong with a connection's name that the profile does not have."""
    return f"{key} {name!r} is not in the profile; it has {', '.join(sorted(known))}"


def literal_problems(location: str) -> list[str]:
    """What is wrong with a model's location, if it is a literal and no SQL expression."""
    problems: list[str] = []
    if location.startswith(SCHEME):
        named_location(location, problems)
    return problems


def named_target(
    operation: str,
    connections: Mapping[str, AwsConnection],
    key: str,
    name: str,
    location: str | None,
) -> tuple[AwsConnection, S3Location]:
    """The connection and the literal location that a run-operation is given.

    Raises ConfigError for a name (the argument `key`) or a location that is none, both at once.
    """
    problems: list[str] = []
    parsed = named_location(location, problems)
    if name not in connections:
        problems.insert(0, unknown_connection(key, name, connections))
    if problems or parsed is None:
        raise ConfigError(operation, problems)
    return connections[name], parsed


def named_location(location: str | None, problems: list[str]) -> S3Location | None:
    """The literal location; None if it is none, and then `problems` says why."""
    try:
        return parse_location(location or "")
    except ValueError as exc:
        problems.append(f"location {exc}")
        return None
