"""`key_order` and `full_listing_hours`."""

import pytest
from support.source.fields import parse

from dbt.adapters.mzs3.errors import ConfigError


def problems(**external):
    with pytest.raises(ConfigError) as raised:
        parse(**external)
    return list(raised.value.problems)


def test_every_listing_is_full_unless_declared_otherwise():
    assert not parse().keys_ascend
    assert not parse(key_order="any").keys_ascend


def test_keys_that_only_grow():
    assert parse(key_order="ascending").keys_ascend
    assert parse(key_order="ascending").full_listing_hours == 24
    assert parse(key_order="ascending", full_listing_hours=1).full_listing_hours == 1


def test_what_is_wrong_with_them():
    assert problems(key_order="up", full_listing_hours=0) == [
        "external.key_order must be one of any, ascending, not 'up'",
        "external.full_listing_hours must be a whole number, 1 or more, not 0",
    ]
    assert problems(full_listing_hours=6) == [
        "external.full_listing_hours needs key_order: ascending beside it; without, every listing "
        "is full"
    ]
    assert problems(full_listing_hours=6, key_order="asc") == [
        "external.key_order must be one of any, ascending, not 'asc'"
    ]
    queue = [{"sqs_notifications": "orders"}]
    assert problems(key_order="ascending", discover=queue) == [
        "external.key_order: ascending needs bucket_scan in external.discover"
    ]
