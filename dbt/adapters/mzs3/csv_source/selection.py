"""The objects that a user names: by key, by URI, or by a pattern."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dbt.adapters.mzs3.aws.location import SCHEME, S3Location
from dbt.adapters.mzs3.csv_source.executor.pattern import Pattern
from dbt.adapters.mzs3.errors import ConfigError, SourceError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SPECIAL = frozenset("*?[{")
_NEAR = 3
_MAX_TOLD = 10


@dataclass(frozen=True)
class Wanted:
    """One name as it was given: the URIs it may mean, and a regular expression if it is a pattern.

    An object of exactly that name goes before the pattern. The expression is for a whole URI.
    """

    text: str
    uris: tuple[str, ...]
    expression: str | None


def read_wanted(operation: str, names: Sequence[str], location: S3Location) -> list[Wanted]:
    """What the names mean for a source at that location.

    A name is an object's URI, its key, or its key below the location; a pattern is matched as
    `external.pattern` is, or against the whole key where it starts with `s3://bucket/`. Raises
    ConfigError with all problems.
    """
    problems: list[str] = []
    wanted = [_wanted(name, location, problems) for name in names]
    if problems:
        raise ConfigError(operation, problems)
    return wanted


def _wanted(name: str, location: S3Location, problems: list[str]) -> Wanted:
    bucket = f"{SCHEME}{location.bucket}/"
    uris: tuple[str, ...]
    if name.startswith(SCHEME):
        if not name.startswith(bucket):
            problems.append(f"{name} is not in the source's bucket, {location.bucket}")
        base, pattern, uris = bucket, name.removeprefix(bucket), (name,)
    else:
        base, pattern = location.uri, name
        uris = tuple(dict.fromkeys((bucket + name, location.uri + name)))
    if not name:
        problems.append("the name of an object is empty")
    expression = None
    if _SPECIAL & set(pattern):
        try:
            expression = rf"\A{re.escape(base)}{Pattern(pattern).expression}\z"
        except ValueError as exc:
            problems.append(f"{name!r} {exc}")
    return Wanted(name, uris, expression)


def select_objects(source: str, objects: DataFrame, wanted: Sequence[Wanted]) -> DataFrame:
    """The rows of `objects` that are wanted; `named` says of each whether by its own name.

    Raises SourceError with all names that are of no object, each with names near to it.
    """
    spellings = sorted({uri for one in wanted for uri in one.uris})
    there = objects.where(F.col("object").isin(spellings)).select("object").collect()
    named = {row["object"] for row in there}
    left = [one for one in wanted if named.isdisjoint(one.uris)]
    patterns = [one for one in left if one.expression is not None]
    unknown = [one for one in left if one.expression is None] + _unmatched(objects, patterns)
    if unknown:
        raise SourceError("\n".join(_unknown_lines(source, objects, unknown)))
    by_name = F.col("object").isin(sorted(named))
    conditions = [by_name, *(_matches(one) for one in patterns)]
    return objects.where(reduce(or_, conditions)).withColumn("named", by_name)


def _matches(wanted: Wanted) -> Column:
    return F.col("object").rlike(str(wanted.expression))


def _unmatched(objects: DataFrame, patterns: Sequence[Wanted]) -> list[Wanted]:
    if not patterns:
        return []
    counts = [F.count_if(_matches(one)).alias(str(n)) for n, one in enumerate(patterns)]
    found = objects.agg(*counts).first()
    return [one for n, one in enumerate(patterns) if not found[str(n)]]


def _unknown_lines(source: str, objects: DataFrame, unknown: Sequence[Wanted]) -> list[str]:
    lines = []
    for one in unknown[:_MAX_TOLD]:
        if one.expression is not None:
            lines.append(f"{source}: {one.text} matches no object of the ledger")
            continue
        distances = [F.levenshtein(F.col("object"), F.lit(uri)) for uri in one.uris]
        distance = F.least(*distances) if len(distances) > 1 else distances[0]
        near = objects.select("object", distance.alias("far")).orderBy("far", "object")
        names = [row["object"] for row in near.limit(_NEAR).collect()]
        hint = f"; near are {', '.join(names)}" if names else ", which has none"
        lines.append(f"{source}: {one.text} is no object of the ledger{hint}")
    more = len(unknown) - _MAX_TOLD
    return [*lines, f"and {more} more"] if more > 0 else lines
