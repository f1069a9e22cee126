"""Dropping a source whose lock is lost on the way; the metastore is a stand-in."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from support.source.fields import parse

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.source import reset

IN_ORDER = ["source", "objects", "rejects", "ledger", "rows"]


@pytest.mark.parametrize("until", range(len(IN_ORDER) + 1))
def test_nothing_is_dropped_once_the_lock_is_lost(monkeypatch, until):
    dropped = []

    def require(outcome):
        if len(dropped) == until:
            raise SourceError(outcome)

    monkeypatch.setattr(reset, "_require_own", lambda *_: None)
    monkeypatch.setattr(reset, "existing_relations", lambda _, of: of.relations)
    monkeypatch.setattr(reset, "_with_generation", lambda *_: [])
    spark = SimpleNamespace(sql=lambda text: dropped.append(text.split(" ")[-1]))
    said = []

    @contextmanager
    def dropping_tables(outcome):
        said.append("drops")
        require(outcome)
        yield

    lock = SimpleNamespace(require=require, dropping_tables=dropping_tables)
    if until == len(IN_ORDER):
        reset.reset_source(spark, parse(), lock)
    else:
        outcome = (
            "nothing is dropped"
            if until == 0
            else "the source is dropped in part, and nothing more"
        )
        with pytest.raises(SourceError, match=f"^{outcome}$"):
            reset.reset_source(spark, parse(), lock)
    assert said == ["drops"]
    assert dropped == [getattr(parse().relations, name) for name in IN_ORDER[:until]]
