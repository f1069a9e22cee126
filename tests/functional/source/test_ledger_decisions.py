"""What a run does about an object, rule by rule: what the ledger knows, and what S3 has now.

An object has the ETag `a` at first, and may be overwritten: as `b`, then as `c`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from dbt.adapters.mzs3.source.listing.reconcile import reconcile, unsettled_objects
from dbt.adapters.mzs3.source.options import OnOverwrite
from dbt.adapters.mzs3.spark.session import isolated_session

pytestmark = pytest.mark.spark

ETAGS = ("a", "b", "c")
GONE = "gone"
SIZES = {"a": 1, "b": 2, "c": 3}
FIRST = datetime(2026, 1, 1)
ROWS_EPOCH, KNOWN_EPOCH, SHOWN_EPOCH = 1, 2, 3


@dataclass(frozen=True)
class History:
    """The latest event that counts, the latest of all if it is another, and the rows' ETag."""

    known: str | None = None
    shown: str | None = None
    rows: str | None = None
    hidden: bool = False


# As the tables below name them. Planned and failed count for nothing; what waits for its turn is
# listed, what is to be taken again is retried.
HISTORIES = {
    "nothing": None,
    "planned": History(shown="listed a"),
    "failed": History(shown="failed a"),
    "listed": History("listed a"),
    "listed, failed": History("listed a", "failed a"),
    "listed, failed as b": History("listed a", "failed b"),
    "removed": History("removed a"),
    "removed, failed as b": History("removed a", "failed b"),
    "skipped": History("skipped a"),
    "skipped, failed as b": History("skipped a", "failed b"),
    "skipped, retried": History("retried a"),
    "fetched": History("fetched a", rows="a"),
    "fetched, planned as b": History("fetched a", "listed b", rows="a"),
    "fetched, failed as b": History("fetched a", "failed b", rows="a"),
    "fetched, listed as b": History("listed b", rows="a"),
    "fetched, ignored as b": History("ignored b", rows="a"),
    "fetched, ignored as b, failed as c": History("ignored b", "failed c", rows="a"),
    "fetched, skipped as b": History("skipped b", rows="a"),
    "fetched, retried": History("retried a", rows="a"),
    "fetched, retried, failed": History("retried a", "failed a", rows="a"),
    "fetched, retried, failed as b": History("retried a", "failed b", rows="a"),
    "retracted": History("retracted a", rows="a", hidden=True),
    "retracted, failed as b": History("retracted a", "failed b", rows="a", hidden=True),
    "retracted, listed as b": History("listed b", rows="a", hidden=True),
    "retracted, retried": History("retried a", rows="a", hidden=True),
}


def last_modified(etag: str) -> datetime:
    return FIRST + timedelta(days=SIZES[etag])


def event(text: str, epoch: int) -> dict[str, Any]:
    state, etag = text.split()
    return {**seen(etag), "state": state, "error": f"error of {state}", "epoch": epoch}


def seen(etag: str) -> dict[str, Any]:
    return {"etag": etag, "size": SIZES[etag], "last_modified": last_modified(etag)}


def ledger_row(name: str, history: History) -> dict[str, Any]:
    known = event(history.known, KNOWN_EPOCH) if history.known else None
    rows = {"rows": 10, "rejects": 20, "at": FIRST, "epoch": ROWS_EPOCH}
    return {
        "object": name,
        "decision": known,
        "latest": event(history.shown, SHOWN_EPOCH) if history.shown else known,
        "fetched": {**seen(history.rows), **rows} if history.rows else None,
        "hidden_before": KNOWN_EPOCH if history.hidden else None,
    }


_SEEN = "etag string, size bigint, last_modified timestamp"
_EVENT = f"struct<{_SEEN}, state string, error string, epoch bigint>"
_TAKEN = f"struct<{_SEEN}, rows bigint, rejects bigint, at timestamp, epoch bigint>"
CANDIDATES = f"object string, {_SEEN}"
OBJECTS = (
    f"object string, decision {_EVENT}, latest {_EVENT}, fetched {_TAKEN}, hidden_before bigint"
)

# Of an object that is there: what a listing, or a queue, makes of it.
THERE = """
the ledger knows                   | there as a           | as b               | as c
nothing                            | take                 | take               | take
planned                            | take                 | take               | take
failed                             | take                 | take               | take
listed                             | take                 | take               | take
listed, failed                     | take                 | take               | take
listed, failed as b                | take                 | take               | take
removed                            | take                 | take               | take
removed, failed as b               | take                 | take               | take
skipped                            | -                    | take               | take
skipped, failed as b               | note skipped again   | take               | take
skipped, retried                   | take                 | take               | take
fetched                            | -                    | overwritten        | overwritten
fetched, planned as b              | note fetched again   | overwritten        | overwritten
fetched, failed as b               | note fetched again   | overwritten        | overwritten
fetched, listed as b               | note fetched         | overwritten        | overwritten
fetched, ignored as b              | -                    | -                  | overwritten
fetched, ignored as b, failed as c | note fetched         | note ignored again | overwritten
fetched, skipped as b              | -                    | -                  | overwritten
fetched, retried                   | take in place        | take in place      | take in place
fetched, retried, failed           | take in place        | take in place      | take in place
fetched, retried, failed as b      | take in place        | take in place      | take in place
retracted                          | -                    | take               | take
retracted, failed as b             | note retracted again | take               | take
retracted, listed as b             | take                 | take               | take
retracted, retried                 | take                 | take               | take
"""
# Of one that is not: it is no longer listed; or a queue says nothing of it, and nothing is listed.
# It goes by the ETag that it had.
NOT_THERE = """
the ledger knows                   | no longer listed          | a queue says nothing
nothing                            | -                         | -
planned                            | note removed, gone as a   | take as a
failed                             | note removed, gone as a   | take as a
listed                             | note removed, gone as a   | take as a
listed, failed                     | note removed, gone as a   | take as a
listed, failed as b                | note removed, gone as a   | take as b
removed                            | -                         | -
removed, failed as b               | note removed, gone as a   | take as b
skipped                            | -                         | -
skipped, failed as b               | note skipped again as a   | take as b
skipped, retried                   | note removed, gone as a   | take as a
fetched                            | -                         | -
fetched, planned as b              | note fetched again as a   | overwritten as b
fetched, failed as b               | note fetched again as a   | overwritten as b
fetched, listed as b               | note fetched, gone as a   | overwritten as b
fetched, ignored as b              | -                         | -
fetched, ignored as b, failed as c | note ignored again as b   | overwritten as c
fetched, skipped as b              | -                         | -
fetched, retried                   | note fetched, gone as a   | take in place as a
fetched, retried, failed           | note fetched, gone as a   | take in place as a
fetched, retried, failed as b      | note fetched, gone as a   | take in place as b
retracted                          | -                         | -
retracted, failed as b             | note retracted again as a | take as b
retracted, listed as b             | note removed, gone as b   | take as b
retracted, retried                 | note removed, gone as a   | take as a
"""
# What `overwritten` stands for.
OVERWRITTEN = {
    OnOverwrite.FAIL: "refuse",
    OnOverwrite.IGNORE: "note ignored, overwritten",
    OnOverwrite.APPEND: "take",
    OnOverwrite.REPLACE: "take in place",
}

# Of an object to take: since which epoch it waits and as what; the ETags with which the ledger has
# it waiting already, has it in any way, and has it refused; and that with which its rows came in.
WAITING = """
the ledger knows                   | since | as      | waiting | known | refused | rows
nothing                            | -     | listed  | -       | -     | -       | -
planned                            | -     | listed  | -       | a     | -       | -
failed                             | -     | listed  | -       | a     | -       | -
listed                             | 2     | listed  | a       | a     | -       | -
listed, failed                     | 2     | listed  | a       | a     | -       | -
listed, failed as b                | 2     | listed  | a       | a b   | -       | -
removed                            | -     | listed  | -       | -     | -       | -
removed, failed as b               | -     | listed  | -       | b     | -       | -
skipped                            | -     | listed  | -       | -     | -       | -
skipped, failed as b               | -     | listed  | -       | b     | -       | -
skipped, retried                   | 2     | retried | a       | a     | -       | -
fetched                            | -     | listed  | -       | -     | -       | a
fetched, planned as b              | -     | listed  | -       | b     | -       | a
fetched, failed as b               | -     | listed  | -       | b     | b       | a
fetched, listed as b               | 2     | listed  | b       | b     | -       | a
fetched, ignored as b              | -     | listed  | -       | -     | -       | a
fetched, ignored as b, failed as c | -     | listed  | -       | c     | c       | a
fetched, skipped as b              | -     | listed  | -       | -     | -       | a
fetched, retried                   | 2     | retried | a       | a     | -       | a
fetched, retried, failed           | 2     | retried | a       | a     | -       | a
fetched, retried, failed as b      | 2     | retried | a       | a b   | -       | a
retracted                          | -     | listed  | -       | -     | -       | a
retracted, failed as b             | -     | listed  | -       | b     | -       | a
retracted, listed as b             | 2     | listed  | b       | b     | -       | a
retracted, retried                 | 2     | retried | a       | a     | -       | a
"""

Decided = Mapping[tuple[OnOverwrite, bool], Mapping[tuple[str, str], Mapping[str, Any]]]


@pytest.fixture(scope="module")
def decided(spark_parameters: dict[str, str]) -> Decided:
    """By `on_overwrite`, and by whether all of S3 was listed: what is decided of each object.

    An object is a history and what S3 has of it; one of which nothing is decided is left out.
    """
    spark = isolated_session(spark_parameters)
    pairs = list(itertools.product(HISTORIES, (*ETAGS, GONE)))
    listed = [{"object": f"{known}|{now}", **seen(now)} for known, now in pairs if now != GONE]
    known = [
        ledger_row(f"{known}|{now}", history)
        for known, now in pairs
        if (history := HISTORIES[known]) is not None
    ]
    candidates = spark.createDataFrame(listed, CANDIDATES).coalesce(1).cache()
    objects = spark.createDataFrame(known, OBJECTS).coalesce(1).cache()

    def found(mode: OnOverwrite, complete: bool) -> dict[tuple[str, str], dict[str, Any]]:
        rows = reconcile(candidates, objects, mode, complete=complete).collect()
        if complete:
            unsettled = unsettled_objects(candidates, objects, mode).collect()
            open_ones = [row["object"] for row in unsettled]
            assert sorted(open_ones) == sorted(row["object"] for row in rows)
        return {tuple(row["object"].split("|")): row.asDict() for row in rows}

    return {
        (mode, complete): found(mode, complete)
        for mode, complete in itertools.product(OnOverwrite, (True, False))
    }


def table(text: str) -> dict[str, list[str]]:
    """The cells of each row but the first, by what the ledger knows."""
    lines = text.strip().splitlines()[1:]
    cells = ([cell.strip() for cell in line.split("|")] for line in lines)
    return {known: rest for known, *rest in cells}


def in_words(row: Mapping[str, Any] | None, now: str) -> str:
    """What is decided of an object, with the ETag it goes by where S3 says none."""
    if row is None:
        return "-"
    assert (row["size"], row["last_modified"]) == (SIZES[row["etag"]], last_modified(row["etag"]))
    at = f" as {row['etag']}" if now == GONE else ""
    if row["action"] == "take":
        return "take in place" + at if row["hides"] else "take" + at
    if row["action"] == "refuse":
        return "refuse" + at
    error = row["error"]
    kept = (10, 20, FIRST) if row["state"] == "fetched" else (None, None, None)
    assert (row["rows"], row["rejects"], row["at"]) == kept
    reasons = {
        None: "",
        f"error of {row['state']}": " again",
        f"it was overwritten: its ETag was a and is {row['etag']}; on_overwrite: ignore keeps the "
        "rows there are": ", overwritten",
        "it was no longer listed when its turn came: it was removed, or the pattern leaves it "
        "out": ", gone",
    }
    return f"note {row['state']}{reasons[error]}{at}"


def meant(cell: str, mode: OnOverwrite) -> str:
    """A cell of the table for one `on_overwrite`."""
    word, _, at = cell.partition(" as ")
    if word != "overwritten":
        return cell
    return OVERWRITTEN[mode] + (f" as {at}" if at else "")


@pytest.mark.parametrize("known", HISTORIES)
def test_what_becomes_of_an_object(decided: Decided, known: str) -> None:
    there, (gone, untold) = table(THERE)[known], table(NOT_THERE)[known]
    for mode in OnOverwrite:
        for complete, last in ((True, gone), (False, untold)):
            rows = decided[mode, complete]
            found = [in_words(rows.get((known, now)), now) for now in (*ETAGS, GONE)]
            assert found == [meant(cell, mode) for cell in (*there, last)], (mode, complete)


@pytest.mark.parametrize("known", HISTORIES)
def test_what_the_ledger_has_of_an_object_to_take(decided: Decided, known: str) -> None:
    since, waits_as, *on_record, rows_etag = table(WAITING)[known]
    waiting, remembered, refused = ([*cell] for cell in on_record)
    for rows in decided.values():
        there = [row for now in ETAGS if (row := rows.get((known, now))) is not None]
        for row in (row for row in there if row["action"] in ("take", "refuse")):
            is_waiting = row["etag"] in (waiting if row["action"] == "take" else refused)
            assert (row["recorded"], row["remembered"]) == (is_waiting, row["etag"] in remembered)
            said = (str(row["since"] or "-"), row["waits_as"], row["previous"] or "-")
            assert said == (since, waits_as, rows_etag)


def test_the_tables_have_every_history() -> None:
    assert [*table(THERE)] == [*table(NOT_THERE)] == [*table(WAITING)] == [*HISTORIES]
