"""Users' decisions about a source's objects: ingest again, skip, or take the rows out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from operator import or_

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.mzs3.errors import ConfigError, SourceError
from dbt.adapters.mzs3.ledger.epochs import unfinished_epochs
from dbt.adapters.mzs3.ledger.events import IS_VISIBLE, OBJECT_COLUMNS, Phase, State, is_any_sql
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.source.executor.pattern import Pattern
from dbt.adapters.mzs3.source.options import SourceDefinition
from dbt.adapters.mzs3.source.run import locked_source
from dbt.adapters.mzs3.source.tables import existing_relations, require_ledger
from dbt.adapters.mzs3.spark.frames import first_row, persisted
from dbt.adapters.mzs3.store.location import SCHEMES, S3Location
from dbt.adapters.mzs3.text import count_noun

_MAX_SHOWN = 10


class ObjectAction(Enum):
    """A decision about objects, by the name of its run-operation."""

    RETRY = "retry_s3_objects"
    SKIP = "skip_s3_objects"
    RETRACT = "retract_s3_objects"


_STATES = {
    ObjectAction.RETRY: State.RETRIED,
    ObjectAction.SKIP: State.SKIPPED,
    ObjectAction.RETRACT: State.RETRACTED,
}
# Whether the action makes sense for an object. A removed object can't be ingested again; one that
# was never in S3 has no ETag.
_FITS = {
    ObjectAction.RETRY: (
        f"({IS_VISIBLE} OR latest.state != '{State.REMOVED}') AND latest.etag IS NOT NULL"
    ),
    ObjectAction.SKIP: is_any_sql("latest.state", State.OPEN),
    ObjectAction.RETRACT: IS_VISIBLE,
}


@dataclass(frozen=True)
class ActionResult:
    """For how many objects something was decided, and how many rows are no longer visible."""

    source: str
    action: ObjectAction
    objects: int
    rows: int

    def line(self) -> str:
        """The line of the log."""
        done = {
            ObjectAction.RETRY: "to be taken again by the next run",
            ObjectAction.SKIP: "skipped",
            ObjectAction.RETRACT: f"retracted, {self.rows} rows taken out",
        }
        return f"{self.source}: {count_noun(self.objects, 'object')} {done[self.action]}"


def act(
    spark: SparkSession, definition: SourceDefinition, action: ObjectAction, names: Sequence[str]
) -> ActionResult:
    """Writes the decision about the named objects to the ledger, in one step; it counts at once.

    Retry: the next run ingests the objects again, in place of their rows. Skip: objects that
    failed or wait are not ingested in their present version; their earlier rows stay. Retract:
    their rows are hidden, and their present version is not ingested again. Raises an Mzs3Error,
    with nothing changed, if a name stands for no object or the action makes no sense for it. If
    the lock was lost meanwhile, raises one that says that the decision may not count.
    """
    wanted = parse_names(action.value, names, definition.location)
    name = definition.name
    with locked_source(spark, definition) as lock:
        require_ledger(spark, definition)
        ledger = Ledger(spark, existing_relations(spark, definition), lock)
        for dead in unfinished_epochs(ledger.epochs()):
            ledger.write_void(dead)
        objects = ledger.objects().where(F.col("object").isNotNull())
        with persisted(select_objects(name, objects, wanted)) as selected:
            _require_sense(name, action, selected)
            fitting = selected.where(_FITS[action])
            rows = _visible_rows(ledger, fitting) if action is ObjectAction.RETRACT else 0
            with persisted(_events(action, fitting)) as events:
                count = events.count()
                lock.require()
                ledger.write_note(events)
            # A run that took the lock meanwhile may have compacted, and ignores earlier events.
            lock.require("the decision may not count, as s3_source_status shows")
    return ActionResult(name, action, count, rows)


def _require_sense(source: str, action: ObjectAction, selected: DataFrame) -> None:
    """Raises SourceError if the action makes no sense for a named object, or for all matches."""
    unfit = selected.where(f"NOT ({_FITS[action]})").select("object", "latest.state", "named")
    wrong = unfit.where("named").orderBy("object").limit(_MAX_SHOWN).collect()
    why = ""
    if not wrong and selected.where(_FITS[action]).first() is None:
        wrong = [first_row(unfit.orderBy("object"))]
        why = "there is nothing to do for any of these objects: "
    if wrong:
        texts = [_unfit_text(action, row["object"], row["state"]) for row in wrong]
        raise SourceError("\n".join(f"{source}: {why}{text}" for text in texts))


def _unfit_text(action: ObjectAction, name: str, state: str) -> str:
    if action is ObjectAction.RETRACT:
        return f"{name} is {state} and has no rows to take out"
    if action is ObjectAction.RETRY:
        return f"{name} is {state} and has no rows; the next run takes it if it is back"
    hint = "; retract_s3_objects takes its rows out" if state == State.FETCHED else ""
    return f"{name} is {state}: neither has it failed nor does it wait{hint}"


def _events(action: ObjectAction, objects: DataFrame) -> DataFrame:
    # A skipped object keeps its error in the ledger.
    error = "latest.error" if action is ObjectAction.SKIP else "CAST(NULL AS string)"
    hides = action is ObjectAction.RETRACT
    columns = ("object", *(f"latest.{name}" for name in OBJECT_COLUMNS[1:]), f"{error} AS error")
    return objects.selectExpr(*columns, f"'{_STATES[action]}' AS state", f"{hides} AS hides")


def _visible_rows(ledger: Ledger, objects: DataFrame) -> int:
    taken = ledger.events().where(f"phase = '{Phase.COMMIT}' AND state = '{State.FETCHED}'")
    taken = taken.selectExpr("object", "`rows`", "position.epoch AS fetched_in")
    hidden = objects.selectExpr("object", "coalesce(hidden_before, 0) AS hidden_before")
    visible = taken.join(hidden, "object").where("fetched_in >= hidden_before")
    return int(first_row(visible.selectExpr("coalesce(sum(`rows`), 0)"))[0])


@dataclass(frozen=True)
class NamedObject:
    """A name as it was given: the URIs it may mean, and a regular expression if it is a pattern.

    If an object has exactly that name, the pattern is ignored. The expression is for a whole URI.
    """

    text: str
    uris: tuple[str, ...]
    expression: str | None


def parse_names(operation: str, names: Sequence[str], location: S3Location) -> list[NamedObject]:
    """What the names stand for in a source at that location.

    A name is an object's URI, its key, or its key below the location; a pattern is matched like
    `external.pattern`, or against the whole key if it starts with `s3://bucket/`. Raises
    ConfigError with all problems.
    """
    bucket = location.uri_of("")
    problems: list[str] = []
    wanted: list[NamedObject] = []
    for name in names:
        base, pattern = location.uri, name
        uris = tuple(dict.fromkeys((bucket + name, location.uri + name)))
        if name.startswith(SCHEMES):
            base, pattern, uris = bucket, name.removeprefix(bucket), (name,)
            if not name.startswith(bucket):
                problems.append(f"{name} is not in the source's bucket, {location.bucket}")
        elif not name:
            problems.append("the name of an object is empty")
        expression = None
        if set("*?[{") & set(pattern):
            try:
                expression = rf"\A{re.escape(base)}{Pattern(pattern).expression}\z"
            except ValueError as exc:
                problems.append(f"{name!r} {exc}")
        wanted.append(NamedObject(name, uris, expression))
    if problems:
        raise ConfigError(operation, problems)
    return wanted


def select_objects(source: str, objects: DataFrame, wanted: Sequence[NamedObject]) -> DataFrame:
    """The rows of `objects` that are wanted; `named` is true for those named exactly.

    Raises SourceError with all names that stand for no object, each with similar names.
    """
    spellings = sorted({uri for each in wanted for uri in each.uris})
    existing = objects.where(F.col("object").isin(spellings)).select("object").collect()
    named = {row["object"] for row in existing}
    others = [each for each in wanted if named.isdisjoint(each.uris)]
    unknown = [each for each in others if each.expression is None]
    patterns = [each for each in others if each.expression is not None]
    matches = [F.col("object").rlike(str(each.expression)) for each in patterns]
    if matches:
        counts = first_row(objects.agg(*map(F.count_if, matches)))
        unknown += [each for each, count in zip(patterns, counts, strict=True) if not count]
    if unknown:
        raise SourceError("\n".join(_unknown_lines(source, objects, unknown)))
    by_name = F.col("object").isin(sorted(named))
    return objects.where(reduce(or_, matches, by_name)).withColumn("named", by_name)


def _unknown_lines(source: str, objects: DataFrame, unknown: Sequence[NamedObject]) -> list[str]:
    lines = []
    for wanted in unknown[:_MAX_SHOWN]:
        if wanted.expression is not None:
            lines.append(f"{source}: {wanted.text} matches no object of the ledger")
            continue
        distances = [F.levenshtein(F.col("object"), F.lit(uri)) for uri in wanted.uris]
        distance = F.array_min(F.array(*distances)).alias("far")
        near = objects.select("object", distance).orderBy("far", "object")
        names = [row["object"] for row in near.limit(3).collect()]
        hint = f"; near are {', '.join(names)}" if names else ", which has none"
        lines.append(f"{source}: {wanted.text} is no object of the ledger{hint}")
    more = len(unknown) - _MAX_SHOWN
    return [*lines, f"and {more} more"] if more > 0 else lines
