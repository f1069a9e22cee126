"""The run-operations on sources: they log results or raise errors."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.mzs3.errors import Mzs3Error, SourceError
from dbt.adapters.mzs3.options.values import Problems
from dbt.adapters.mzs3.project.overlaps import require_own
from dbt.adapters.mzs3.project.sources import (
    declared_external,
    selected_sources,
    source_definition,
    source_name,
)
from dbt.adapters.mzs3.project.staging import ingest_sources
from dbt.adapters.mzs3.runner import Runner, runner_for
from dbt.adapters.mzs3.secrets import hide_secrets
from dbt.adapters.mzs3.source.operations.object_actions import ObjectAction, act
from dbt.adapters.mzs3.source.operations.preview import parse_preview, preview_source
from dbt.adapters.mzs3.source.operations.show_definition import purified_lines, read_purified
from dbt.adapters.mzs3.source.operations.status import SourceStatus, read_status, status_table
from dbt.adapters.mzs3.source.options import SourceDefinition
from dbt.adapters.mzs3.source.report import reset_hint
from dbt.adapters.mzs3.source.reset import ingested_after_reset, reset_ingested
from dbt.adapters.mzs3.source.run import unlock
from dbt.adapters.mzs3.spark.job import Call

T = TypeVar("T")

logger = AdapterLogger("mzs3")

_A_SOURCE = "a source or a table of one, such as lake or lake.orders"
_A_TABLE = "a table of a source, such as lake.orders"
_OBJECTS = "a list of keys, URIs or patterns of objects, such as ['orders/2.csv']"


def ingest(adapter: Any, select: Any) -> None:
    """Ingests the selected sources, or all; raises DbtRuntimeError with all errors."""
    ingest_sources(adapter, _selected(adapter, "ingest_s3_sources", select))


def show_status(adapter: Any, select: Any) -> None:
    """Prints a table of the selected sources, or of all."""
    statuses: list[SourceStatus] = []

    def read(runner: Runner, node: Any) -> None:
        statuses.append(_run(adapter, runner, node, read_status))

    try:
        _for_each_source(adapter, "s3_source_status", select, read)
    finally:
        # Also after errors, which may be those of only some sources.
        for line in status_table(statuses) if statuses else ():
            fire_event(Note(msg=line))


def show_purified(adapter: Any, select: Any) -> None:
    """Prints the purified definition of the selected sources, or of all."""
    connections = adapter.config.credentials.connections

    def show(runner: Runner, node: Any) -> None:
        connection = connections[_definition(adapter, node).aws_connection]
        purified = _run(adapter, runner, node, read_purified, connection=connection)
        for line in purified_lines(purified, declared_external(node)):
            fire_event(Note(msg=line))

    _for_each_source(adapter, "purify_s3_sources", select, show)


def preview(adapter: Any, source: Any, how: Any) -> None:
    """Prints what one source would read, from the start of some of its objects."""
    credentials, problems = adapter.config.credentials, Problems("preview_s3_source")
    with problems.gathered():
        request = parse_preview(how)
    node = _one_source(adapter, "preview_s3_source", source, problems.found, only_reads=True)
    connection = credentials.connections[_definition(adapter, node).aws_connection]
    with runner_for(credentials) as runner:
        what = {"connection": connection, "request": request}
        lines = _run(adapter, runner, node, preview_source, **what)
    for line in lines:
        # Errors are among the lines.
        fire_event(Note(msg=hide_secrets(credentials.secrets, line)))


def act_on_objects(adapter: Any, source: Any, objects: Any, action: ObjectAction) -> None:
    """Retries, skips or retracts objects of one source."""
    names = [objects] if isinstance(objects, str) else objects
    if not isinstance(names, (list, tuple)) or not names:
        problems = [f"objects must be {_OBJECTS}, not {objects!r}"]
    else:
        wrong = [name for name in names if not isinstance(name, str)]
        problems = [f"each of objects must be a text, not {name!r}" for name in wrong]
    node = _one_source(adapter, action.value, source, problems)
    with runner_for(adapter.config.credentials) as runner:
        acted = _run(adapter, runner, node, act, action=action, names=list(names))
    fire_event(Note(msg=acted.line()))


def reset(adapter: Any, source: Any, confirm: Any) -> None:
    """Drops everything that was ingested from one source."""
    node = _one_source(adapter, "reset_s3_source", source)
    definition = _definition(adapter, node)
    name, then = definition.name, ingested_after_reset(definition)
    if confirm is not True:
        raise SourceError(
            f"{name}: reset_s3_source drops all rows and the ledger of {name}, and the next "
            f"run ingests {then}. If that is what you want, say so: {reset_hint(name)}"
        )
    with runner_for(adapter.config.credentials) as runner:
        _run(adapter, runner, node, reset_ingested)
    fire_event(Note(msg=f"{name}: reset; the next run ingests {then}"))


def unlock_source(adapter: Any, source: Any) -> None:
    """Takes the lock of one source from its holder, which then can't commit."""
    node = _one_source(adapter, "unlock_s3_source", source)
    with runner_for(adapter.config.credentials) as runner:
        owner = _run(adapter, runner, node, unlock)
    fire_event(Note(msg=f"{source}: unlocked; {owner or 'nobody'} had the lock"))


def _selected(adapter: Any, operation: str, select: Any) -> list[Any]:
    """The nodes of the sources that `select` names; all if it is None."""
    names = [select] if isinstance(select, str) else select
    if names is not None and not isinstance(names, (list, tuple)):
        problems = [f"select must be {_A_SOURCE}, or a list of them, not {select!r}"]
    elif names is not None and not names:
        problems = ["select is empty; leave it out for all sources"]
    else:
        wrong = [name for name in names or () if not isinstance(name, str)]
        problems = [f"each of select must be {_A_SOURCE}, not {name!r}" for name in wrong]
    Problems(operation, problems).raise_if_any()
    return selected_sources(adapter.get_macro_resolver(), names)


def _one_source(
    adapter: Any,
    operation: str,
    table: Any,
    other_problems: Sequence[str] = (),
    *,
    only_reads: bool = False,
) -> Any:
    """The node of one table. Raises ConfigError if another node writes its relations, unless the
    operation only reads."""
    of_table = [] if isinstance(table, str) else [f"source must be {_A_TABLE}, not {table!r}"]
    Problems(operation, [*of_table, *other_problems]).raise_if_any()
    nodes = selected_sources(adapter.get_macro_resolver(), [table])
    names = sorted(map(source_name, nodes))
    if names == [table]:
        if not only_reads:
            require_own(adapter, nodes[0])
        return nodes[0]
    raise SourceError(f"source must be {_A_TABLE}, not the whole of {table}: {', '.join(names)}")


def _definition(adapter: Any, node: Any) -> SourceDefinition:
    return source_definition(node, adapter.config.credentials.connections)


def _run(
    adapter: Any, runner: Runner, node: Any, function: Callable[..., T], **arguments: Any
) -> T:
    """Runs the function for one source, in a session of its own; returns the result."""
    definition = _definition(adapter, node)
    return runner.run(Call(function, {"definition": definition, **arguments}), definition.name)


def _for_each_source(
    adapter: Any, operation: str, select: Any, action: Callable[[Runner, Any], None]
) -> None:
    errors = []
    with runner_for(adapter.config.credentials) as runner:
        for node in _selected(adapter, operation, select):
            try:
                action(runner, node)
            except Mzs3Error as exc:
                logger.debug(traceback.format_exc())
                errors.append(str(exc))
    if errors:
        raise DbtRuntimeError("\n".join(errors))
