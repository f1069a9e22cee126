"""Nothing is pinned before the first commit; a first run that fails leads somewhere."""

from __future__ import annotations

import re

import pytest
from support.queue.announcing import Died, dying_at
from support.spark.table_formats import SESSION_TABLES, not_in_own_catalog

from dbt.adapters.mzs3.errors import ConfigError, SourceError
from dbt.adapters.mzs3.ledger.lease import Owner, SourceLock
from dbt.adapters.mzs3.source import pinning
from dbt.adapters.mzs3.source.operations.object_actions import ObjectAction, act
from dbt.adapters.mzs3.source.operations.show_definition import read_purified
from dbt.adapters.mzs3.source.operations.status import read_status
from dbt.adapters.mzs3.source.reset import reset_ingested
from dbt.adapters.mzs3.source.run import unlock
from dbt.adapters.mzs3.source.tables import read_tables
from dbt.adapters.mzs3.spark.tables import encode_property

pytestmark = [pytest.mark.spark, pytest.mark.light, not_in_own_catalog]

README = "This folder has the orders\nof 2024\n"


def with_readme(lake):
    lake.put("0-README.txt", README)
    lake.put("1.csv", "id,note\n1,a\n")
    lake.put("2.csv", "id,note\n2,b\n")


BOTH = [("1.csv", 1, "1", "a"), ("2.csv", 1, "2", "b")]


def test_a_first_run_that_fails_pins_nothing_and_names_the_object_to_leave_out(lake):
    with_readme(lake)
    with pytest.raises(SourceError) as raised:
        lake.ingest()
    readme = f"s3://{lake.bucket}/orders/0-README.txt"
    skip = "dbt run-operation skip_s3_objects --args "
    assert str(raised.value).endswith(
        f". The header that it was compared with is that of {readme}, and is not pinned before "
        "something is committed: if that object is wrong, leave it out with: "
        f"{skip}'{{source: lake.orders, objects: [\"{readme}\"]}}'"
    )
    act(lake.spark, lake.definition(), ObjectAction.SKIP, [readme])
    shown = read_purified(lake.spark, lake.definition(), lake.connection)
    assert (shown.is_pinned, shown.purified.header) == (False, ("id", "note"))
    # The user's decision counts, in tables that are made anew.
    assert lake.ingest().objects == 2
    assert lake.rows("id", "note") == BOTH
    assert lake.states()["0-README.txt"][0] == "skipped"
    lake.put("3.csv", "id,price\n3,c\n")
    with pytest.raises(SourceError) as raised:
        lake.ingest()
    reset = "dbt run-operation reset_s3_source --args '{source: lake.orders, confirm: true}'"
    assert str(raised.value).endswith(
        f". The pinned header is that of s3://{lake.bucket}/orders/1.csv: to pin another one, "
        f"start with: {reset}"
    )


@pytest.mark.parametrize(
    "step",
    [
        "drop",
        "drop and make",
        "create",
        "end create",
    ],
)
def test_a_run_that_dies_while_it_makes_the_tables_anew_is_made_good(lake, monkeypatch, step):
    with_readme(lake)
    with pytest.raises(SourceError):
        lake.ingest()
    lake.remove("0-README.txt")
    with monkeypatch.context() as patch:
        if step == "drop":
            patch.setattr(pinning, "drop_rows", dying(pinning.drop_rows, before=True))
        elif step == "drop and make":
            patch.setattr(pinning, "drop_rows", dying(pinning.drop_rows, before=False))
        elif step == "create":
            patch.setattr(pinning, "make_relations", dying(pinning.make_relations, before=False))
        if step != "end create":
            # As if the process were killed: what it has begun it does not end.
            patch.setattr(
                "dbt.adapters.mzs3.ledger.lease.LockTable.drop_mark",
                lambda *_: None,
            )
        with pytest.raises(Died):
            lake.ingest(on_step=dying_at(step))
    assert lake.ingest().objects == 2
    assert lake.rows("id", "note") == BOTH
    left = lake.spark.sql(f"SHOW TABLES IN `{lake.schema}`").collect()
    names = {row["tableName"] for row in left}
    assert {name for name in names if not lake.relations.has_generation(name)} == {
        "orders",
        "orders__ledger",
        "orders__objects",
        "orders__rejects",
        "orders__rows",
    }


def dying(function, *, before):
    def killed(*given):
        if not before:
            function(*given)
        raise Died

    return killed


def test_what_another_run_may_still_drop_is_waited_for(lake, monkeypatch):
    with_readme(lake)
    with pytest.raises(SourceError):
        lake.ingest()
    lake.remove("0-README.txt")
    far = SourceLock(lake.spark, lake.relations, "lake.orders")
    owner = Owner(place="elsewhere", boot="", pid=7, started="", host="etl-1")
    far.holder = type(far.holder)(far.holder.token, owner)
    far.table.mark(far.holder)
    mark = f"{lake.schema}.orders__drop_{far.holder.token}"
    with pytest.raises(SourceError) as raised:
        lake.ingest()
    assert str(raised.value) == (
        "lake.orders: process 7 on host etl-1 was dropping tables of this source and has not come "
        "to its end; what it still drops could be this run's. See to it that it is gone, and then "
        f"drop the table that says so: DROP TABLE {mark}"
    )
    lake.spark.sql(f"DROP TABLE {mark}")
    assert lake.ingest().objects == 2


@pytest.mark.parametrize("then", ["correct", "list"])
def test_a_first_run_that_would_skip_all_objects_but_one_is_not_committed(lake, then):
    lake.external = {"on_header_mismatch": "skip_object"}
    with_readme(lake)
    with pytest.raises(SourceError) as raised:
        lake.ingest()
    readme = f"s3://{lake.bucket}/orders/0-README.txt"
    text = str(raised.value)
    assert text.startswith(
        "lake.orders: this first run would skip 2 objects, and take 1 with any record; nothing of "
        "it is committed, and nothing pinned. The header that they were compared with is that of "
        f"{readme}. If that object is wrong, leave it out with: dbt run-operation skip_s3_objects"
    )
    assert text.endswith(
        f"then run again. The first: object s3://{lake.bucket}/orders/1.csv, line 1, byte 0: "
        "header is id,note but the source's header is This folder has the orders: first "
        "difference at column 1, 'id' instead of 'This folder has the orders'"
    )
    assert status(lake).last_error == text
    if then == "correct":
        act(lake.spark, lake.definition(), ObjectAction.SKIP, ["0-README.txt"])
        assert lake.ingest().objects == 2
    else:
        lake.external |= {"header": ["id", "note"]}
        report = lake.ingest()
        assert (report.objects, report.skipped) == (2, 1)
    assert lake.rows("id", "note") == BOTH


def test_no_limit_lets_a_first_run_take_a_wrong_header_for_the_right_one(lake):
    lake.external = {"on_header_mismatch": "skip_object", "max_objects_per_run": 1}
    with_readme(lake)
    lake.put("0.csv", "")
    with pytest.raises(SourceError, match="would skip 2 objects, and take 1 with any record"):
        lake.ingest()
    lake.put("0-README.txt", 'a "quoted" word\n')
    # What can't be read is passed over, as it is where it is fetched.
    report = lake.ingest()
    assert (report.objects, report.skipped, report.waiting_objects) == (2, 1, 1)
    assert lake.rows("id", "note") == BOTH


def test_a_header_that_is_found_in_another_object_makes_nothing_anew(lake, monkeypatch):
    lake.put("1.csv", "id,note\n1\n")
    lake.put("2.csv", "id,note\n2,b\n")
    with pytest.raises(SourceError, match="expected 2 columns"):
        lake.ingest()
    lake.remove("1.csv")
    monkeypatch.setattr(pinning, "drop_rows", dying(pinning.drop_rows, before=True))
    assert lake.ingest().objects == 1


def test_what_a_queue_told_of_stays_where_it_is(post, lake):
    lake.put("1.csv", "id,note\n1\n")
    with pytest.raises(SourceError, match="expected 2 columns"):
        post.ingest()
    lake.external |= {"location": f"s3://{lake.bucket}/elsewhere"}
    with pytest.raises(SourceError) as raised:
        post.ingest()
    assert str(raised.value) == (
        f"lake.orders: its location is declared as 's3://{lake.bucket}/elsewhere/', and its "
        f"ledger has objects of another one, such as s3://{lake.bucket}/orders/1.csv. Restore the "
        "location; or, to ingest only what the queue announces from then on under this one, drop "
        "what is known of the old one: dbt run-operation reset_s3_source --args "
        "'{source: lake.orders, confirm: true}'"
    )


def status(lake):
    return read_status(lake.spark, lake.definition())


def test_a_first_run_of_rejects_alone_is_not_committed(lake):
    lake.external = {"on_bad_row": "reject"}
    lake.columns = [{"name": "id", "data_type": "int"}, {"name": "note"}]
    lake.put("1.csv", "id,note\nx,a\ny,b\n")
    with pytest.raises(SourceError) as raised:
        lake.ingest()
    assert str(raised.value) == (
        "lake.orders: this first run would reject 2 records, and take none; nothing of it is "
        f"committed, and nothing pinned. The first: object s3://{lake.bucket}/orders/1.csv, line "
        "2, byte 8: column id: 'x' is not an int"
    )
    # Nothing of the definition is pinned, either.
    lake.columns = [{"name": "id"}, {"name": "note"}]
    assert lake.ingest().rows == 2


def test_what_a_queue_told_of_before_is_taken_by_tables_that_are_made_anew(post, lake):
    lake.put("1.csv", "id,note\n1,a\n2\n")
    with pytest.raises(SourceError, match="line 3"):
        post.ingest()
    post.lose()
    lake.columns = [{"name": "note"}, {"name": "id", "data_type": "int"}]
    lake.external |= {"on_bad_row": "reject"}
    assert post.ingest().rows == 1
    assert lake.rows("id", "note") == [("1.csv", 1, 1, "a")]


def test_a_header_that_is_no_columns_says_whose_it_is(lake):
    with_readme(lake)
    lake.columns = [{"name": "id"}, {"name": "note"}]
    with pytest.raises(ConfigError) as raised:
        lake.ingest()
    assert str(raised.value).startswith(
        "source lake.orders, by the header of object "
        f"s3://{lake.bucket}/orders/0-README.txt (if it is none of the source's, remove it, or "
        "narrow `pattern`), has 1 problem in its configuration:\n"
        '  - 2 columns are declared but the header has 1: ("This folder has the orders"). It has '
    )


def test_the_tables_of_a_source_are_its_own(lake):
    lake.put("1.csv", "id\n1\n")
    lake.ingest()
    definition = lake.definition()
    of = f"{'TABLE' if SESSION_TABLES == 'parquet' else 'VIEW'} {lake.schema}.orders__rows"
    others = f"('mzs3.table.source' = '{encode_property('lake.sales')}')"
    lake.spark.sql(f"ALTER {of} SET TBLPROPERTIES {others}")
    hand_over = f"ALTER {of} UNSET TBLPROPERTIES ('mzs3.table.source')"
    refused = "^" + re.escape(
        f"lake.orders: {lake.schema}.orders__rows is the table of the source lake.sales, and one "
        "relation is one source's. Give lake.orders another schema or identifier. Or, if it is "
        f"what lake.sales is called now, hand the table over to it, in Spark: {hand_over}"
    )
    for operation in (
        lake.ingest,
        lambda: lake.ingest(afresh=True),
        lambda: read_status(lake.spark, definition),
        lambda: read_purified(lake.spark, definition, lake.connection),
        lambda: reset_ingested(lake.spark, definition),
        lambda: unlock(lake.spark, definition),
        *(lambda of=action: act(lake.spark, definition, of, ["1.csv"]) for action in ObjectAction),
    ):
        with pytest.raises(SourceError, match=refused):
            operation()
    lake.spark.sql(hand_over)
    assert lake.ingest().objects == 0  # it names its source again
    assert read_tables(lake.spark, definition).has_owner
    assert lake.rows("id") == [("1.csv", 1, "1")]
