"""How strictly a source's objects are read: the keys of `external` that say so."""

from __future__ import annotations

from dbt.adapters.mzs3.config.values import ConfigReader, choice, whole_number
from dbt.adapters.mzs3.csv_source.executor.encoding import UTF_8, canonical_encoding
from dbt.adapters.mzs3.csv_source.executor.reading import (
    EXACT,
    FAIL,
    HEADER_MATCHES,
    ON_BAD_ROW,
    ON_HEADER_MISMATCH,
    REJECT,
    Reading,
)


def parse_reading(read: ConfigReader, *, has_header: bool) -> Reading:
    """What `header_match`, `on_bad_row` and the like declare."""
    reading = Reading(
        header_match=read("header_match", choice(HEADER_MATCHES)) or EXACT,
        on_header_mismatch=read("on_header_mismatch", choice(ON_HEADER_MISMATCH)) or FAIL,
        on_bad_row=read("on_bad_row", choice(ON_BAD_ROW)) or FAIL,
        max_rejects=read("max_rejects", whole_number(0)),
        encoding=read("encoding", lambda name: canonical_encoding(str(name))) or UTF_8,
    )
    if reading.max_rejects is not None and read.given.get("on_bad_row", FAIL) == FAIL:
        read.note(f"max_rejects needs `on_bad_row: {REJECT}` beside it")
    if not has_header:
        for key, value, default in (
            ("header_match", reading.header_match, EXACT),
            ("on_header_mismatch", reading.on_header_mismatch, FAIL),
        ):
            if value != default:
                read.note(
                    f"{key}: {value} needs objects with a header, but external.header is false"
                )
    return reading
