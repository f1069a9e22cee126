"""The run-operations on S3 CSV sources: arguments in, log lines or an error out."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.mzs3.connections import as_dbt_error
from dbt.adapters.mzs3.csv_source.access import changing, unlock
from dbt.adapters.mzs3.csv_source.definition import SourceDefinition
from dbt.adapters.mzs3.csv_source.operations.object_actions import ObjectAction, act
from dbt.adapters.mzs3.csv_source.operations.pinned_definition import purified_lines, read_purified
from dbt.adapters.mzs3.csv_source.operations.reset import ingested_after_reset, reset_source
from dbt.adapters.mzs3.csv_source.operations.status import SourceStatus, read_status, status_table
from dbt.adapters.mzs3.csv_source.report import reset_hint
from dbt.adapters.mzs3.errors import ConfigError, Mzs3Error, SourceError
from dbt.adapters.mzs3.project.sources import (
    declared_external,
    open_session,
    selected_sources,
    source_definition,
    source_name,
)
from dbt.adapters.mzs3.project.staging import ingest_sources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = AdapterLogger("mzs3")

_A_SOURCE = "a source or a table of one, such as lake or lake.orders"
_A_TABLE = "a table of a source, such as lake.orders"


def ingest(adapter: Any, select: Any) -> None:
    """Ingest the named sources, or all; fails with the errors of all that failed."""
    ingest_sources(adapter, selection("ingest_s3_sources", select))


def show_status(adapter: Any, select: Any) -> None:
    """A table of the selected sources, or of all."""
    statuses: list[SourceStatus] = []

    def read(node: Any) -> None:
        statuses.append(read_status(*_session_and_definition(adapter, node)))

    try:
        _each(adapter, "s3_source_status", select, read)
    finally:
        # One source that is broken does not hide how the others are.
        _say(status_table(statuses) if statuses else [])


def show_purified(adapter: Any, select: Any) -> None:
    """The purified definition of the selected sources, or of all."""

    def show(node: Any) -> None:
        session, definition = _session_and_definition(adapter, node)
        connection = adapter.config.credentials.connections[definition.aws_connection]
        purified = read_purified(session, definition, connection)
        _say(purified_lines(purified, declared_external(node)))

    _each(adapter, "purify_s3_sources", select, show)


def act_on_objects(adapter: Any, action: ObjectAction, source: Any, objects: Any) -> None:
    """Retry, skip or retract objects of one source."""
    names = [objects] if isinstance(objects, str) else objects
    if isinstance(names, (list, tuple)) and names:
        wrong = [name for name in names if not isinstance(name, str)]
        problems = [f"each of objects must be a text, not {name!r}" for name in wrong]
    else:
        what = "a list of keys, URIs or patterns of objects, such as ['orders/2.csv']"
        problems = [f"objects must be {what}, not {objects!r}"]
    with _our_errors():
        node = _one_source(adapter, action.value, source, problems)
        session, definition = _session_and_definition(adapter, node)
        acted = act(session, definition, action, list(names))
    _say([acted.line()])


def reset(adapter: Any, source: Any, confirm: Any) -> None:
    """Drop all that was ingested of one source."""
    with _our_errors():
        node = _one_source(adapter, "reset_s3_source", source)
        definition = source_definition(node, adapter.config.credentials.connections)
        name, then = definition.name, ingested_after_reset(definition.discovery)
        if confirm is not True:
            raise SourceError(
                f"{name}: reset_s3_source drops all rows and the ledger of {name}, and the next "
                f"run ingests {then}. If that is what you want, say so: {reset_hint(name)}"
            )
        session, definition = _session_and_definition(adapter, node)
        with changing(session, definition) as lock:
            reset_source(session, definition, lock)
    _say([f"{name}: reset; the next run ingests {then}"])


def unlock_source(adapter: Any, source: Any) -> None:
    """Take the lock of one source away from whoever has it."""
    with _our_errors():
        node = _one_source(adapter, "unlock_s3_source", source)
        owner = unlock(*_session_and_definition(adapter, node))
    had = f"process {owner.pid} on host {owner.host}" if owner else "nobody"
    _say([f"{source}: unlocked; {had} had the lock"])


def selection(operation: str, select: Any) -> list[str] | None:
    """One name or several; None is all. Raises DbtRuntimeError with all that are none."""
    if select is None:
        return None
    names = [select] if isinstance(select, str) else select
    problems = []
    if not isinstance(names, (list, tuple)):
        problems.append(f"select must be {_A_SOURCE}, or a list of them, not {select!r}")
    elif not names:
        problems.append("select is empty; leave it out for all sources")
    else:
        wrong = [name for name in names if not isinstance(name, str)]
        problems += [f"each of select must be {_A_SOURCE}, not {name!r}" for name in wrong]
    with _our_errors():
        if problems:
            raise ConfigError(operation, problems)
    return list(names)


def _one_source(adapter: Any, operation: str, table: Any, problems: Sequence[str] = ()) -> Any:
    """The node of a source's table. Raises ConfigError, with the problems of other arguments."""
    if not isinstance(table, str):
        problems = [f"source must be {_A_TABLE}, not {table!r}", *problems]
    if problems:
        raise ConfigError(operation, problems)
    found = selected_sources(adapter.get_macro_resolver(), [table])
    if [source_name(node) for node in found] == [table]:
        return found[0]
    names = ", ".join(sorted(source_name(node) for node in found))
    raise SourceError(f"source must be {_A_TABLE}, not the whole of {table}: {names}")


def _session_and_definition(adapter: Any, node: Any) -> tuple[SparkSession, SourceDefinition]:
    credentials = adapter.config.credentials
    definition = source_definition(node, credentials.connections)
    return open_session(credentials, definition.name), definition


def _each(adapter: Any, operation: str, select: Any, action: Callable[[Any], None]) -> None:
    """Does this with each selected source; raises DbtRuntimeError with the errors of all."""
    errors = []
    for node in selected_sources(adapter.get_macro_resolver(), selection(operation, select)):
        try:
            action(node)
        except Mzs3Error as exc:
            logger.debug(traceback.format_exc())
            errors.append(str(exc))
    if errors:
        raise DbtRuntimeError("\n".join(errors))


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        fire_event(Note(msg=line))


@contextmanager
def _our_errors() -> Iterator[None]:
    try:
        yield
    except Mzs3Error as exc:
        raise as_dbt_error(exc) from exc
