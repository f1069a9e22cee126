"""Texts that Spark would redact, as properties that it leaves alone."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.mzs3.spark.tables import decode_property, encode_property

# What Spark redacts where it shows properties (spark.redaction.regex and its SQL options).
REDACTED = re.compile("url|secret|password|token|access[.]?key|credential", re.IGNORECASE)
words = st.sampled_from(["url", "Token", "access_key", "accesskey", "hourly_rate", "credential"])


@given(st.lists(words | st.text(max_size=5)).map("".join))
def test_any_text_comes_back_and_is_never_redacted(text):
    assert decode_property(encode_property(text)) == text
    assert not REDACTED.search(encode_property(text))


@pytest.mark.parametrize("value", ["*********(redacted)", "abc", "ff", "{}"])
def test_what_was_not_encoded_is_an_error(value):
    with pytest.raises(ValueError, match=r".+"):
        decode_property(value)
