"""Whether a connection may do what exports and sources ask of it, before they do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.mzs3.aws.check import check_connection
from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.aws.named import named_location, unknown_connection
from dbt.adapters.mzs3.aws.permissions import Check, check_permissions
from dbt.adapters.mzs3.csv_source.config.discovery import queue_name, queue_problem
from dbt.adapters.mzs3.csv_source.queue.permissions import check_queue
from dbt.adapters.mzs3.errors import ConfigError

OPERATION = "validate_aws_connection"


@dataclass(frozen=True)
class Tried:
    """What was tried in one place; `cannot` is the user's loss if something essential fails."""

    cannot: str
    checks: list[Check]

    @property
    def error(self) -> str | None:
        """The essential ones that fail, under what can't work without them; None without any."""
        failed = [check.line for check in self.checks if check.stops_all]
        return "\n".join([f"{self.cannot}:", *failed]) if failed else None


def identify(connections: Mapping[str, AwsConnection], name: str) -> str:
    """Who the connection is, and where; nothing but its credentials is tried.

    Raises ConfigError for what is no connection, and S3Error if it does not work.
    """
    if name not in connections:
        raise ConfigError(OPERATION, [unknown_connection("name", name, connections)])
    return check_connection(connections[name])


def validate_connection(
    connections: Mapping[str, AwsConnection], name: str, location: str | None, queue: Any
) -> list[Tried]:
    """What the connection may do below the location, and with the queue; either may be None.

    Nothing is left there. Raises ConfigError for what is no connection, location or queue, all at
    once; and S3Error, one clear line, for what lets nothing work.
    """
    problems: list[str] = []
    if name not in connections:
        problems.append(unknown_connection("name", name, connections))
    place = None
    if location is not None:
        place = named_location(location, problems)
    if queue is not None and (problem := queue_problem(queue)) is not None:
        problems.append(f"queue {problem}")
    if problems:
        raise ConfigError(OPERATION, problems)
    tried = []
    if place is not None:
        checks = check_permissions(connections[name], place)
        tried.append(Tried(f"exports to {location} can't work", checks))
    if queue is not None:
        checks = check_queue(connections[name], queue)
        tried.append(Tried(f"sources can't ingest from the queue {queue_name(queue)}", checks))
    return tried
