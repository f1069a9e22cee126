"""How fresh a source is said to be: what its listing shows, what its ledger does, or both."""

from datetime import datetime, timezone
from types import SimpleNamespace

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.mzs3 import runner
from dbt.adapters.mzs3.project import freshness
from dbt.adapters.mzs3.source.freshness import Freshness, with_ingested
from dbt.adapters.mzs3.store.connection import AwsConnection

EARLIER = datetime(2024, 1, 1, tzinfo=timezone.utc)
LATER = datetime(2024, 1, 2, tzinfo=timezone.utc)
RELATION = SimpleNamespace(schema="raw", identifier="orders")


@pytest.fixture
def adapter():
    credentials = SimpleNamespace(
        has_session=True,
        runs_jobs=True,
        connections={"default": AwsConnection()},
        server_side_parameters={},
        default_catalog="spark_catalog",
        executor_timeout=600,
    )
    config = SimpleNamespace(
        credentials=credentials,
        project_name="acme",
        cli_vars={},
        vars=SimpleNamespace(to_dict=dict),
    )
    # Another source may have the same relation: what only reads goes on.
    return SimpleNamespace(
        config=config, overlaps={"source.acme.lake.orders": ["it is another's too"]}
    )


def manifest_of(**external):
    external = {"type": "s3_csv_source", "location": "s3://lake/orders", **external}
    node = SimpleNamespace(
        unique_id="source.acme.lake.orders",
        source_name="lake",
        name="orders",
        schema="raw",
        identifier="orders",
        external=SimpleNamespace(to_dict=lambda omit_none: external),
        columns={},
    )
    return SimpleNamespace(sources={node.unique_id: node})


@pytest.fixture
def found(monkeypatch):
    monkeypatch.setattr(freshness, "read_freshness", lambda *_: Freshness(EARLIER, 1, 10))
    ingested = Freshness(LATER, 2, 20)
    monkeypatch.setattr(freshness, "read_ingested_freshness", lambda _, definition: ingested)
    monkeypatch.setattr(freshness, "read_pending", lambda _, definition, connection: (3, 30))
    monkeypatch.setattr(runner, "session_of", lambda _: None)


@pytest.mark.parametrize(
    ("discover", "after", "expected"),
    [
        (["bucket_scan"], "keep", (1, 10, EARLIER)),
        (["bucket_scan", {"sqs_notifications": "q"}], "tag", (1, 10, EARLIER)),
        ([{"sqs_notifications": "q"}], "keep", (2, 20, LATER)),
        ([{"sqs_notifications": "q"}], "delete", (2, 20, LATER)),
        (["bucket_scan"], "delete", (1, 10, LATER)),
        (["bucket_scan"], {"move": "s3://attic/"}, (1, 10, LATER)),
    ],
)
def test_a_source_whose_objects_no_listing_shows_is_as_fresh_as_its_ledger(
    adapter, found, discover, after, expected
):
    manifest = manifest_of(discover=discover, after_commit=after)
    response, newest, _ = freshness.freshness_from_s3(adapter, RELATION, manifest)
    assert (response.objects, response.bytes, newest) == expected


@pytest.mark.parametrize(
    ("value", "pending"), [(None, None), (False, None), (True, (3, 30)), ("true", "an error")]
)
def test_what_is_pending_is_told_to_who_asks(adapter, found, value, pending):
    adapter.config.cli_vars = {"mzs3_freshness_pending": value}
    if pending == "an error":
        with pytest.raises(DbtRuntimeError, match="must be true or false, not 'true'"):
            freshness.freshness_from_s3(adapter, RELATION, manifest_of())
        return
    response, _, _ = freshness.freshness_from_s3(adapter, RELATION, manifest_of())
    told = (response.pending_objects, response.pending_bytes)
    assert told == (pending or (None, None))


def test_of_sources_that_are_one_relation_to_spark_the_one_that_is_asked_for_is_read(
    adapter, found, monkeypatch
):
    monkeypatch.setattr(freshness, "read_freshness", lambda one, _: Freshness(None, 0, one.name))
    other = manifest_of()
    for node in other.sources.values():
        node.name, node.schema = "other", "RAW"
    manifest = SimpleNamespace(
        sources={"other": next(iter(other.sources.values())), **manifest_of().sources}
    )
    response, _, _ = freshness.freshness_from_s3(adapter, RELATION, manifest)
    assert response.bytes == "lake.orders"


def test_what_is_listed_and_what_is_ingested_may_both_be_nothing():
    nothing, listed = Freshness(None, 0, 0), Freshness(LATER, 1, 10)
    assert with_ingested(nothing, nothing) == nothing
    assert with_ingested(listed, nothing) == listed
    assert with_ingested(listed, Freshness(EARLIER, 2, 20)) == listed
