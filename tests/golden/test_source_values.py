"""PostgreSQL makes of the texts of sources what the page of values says."""

import psycopg
import pytest
from psycopg import sql
from support.docs.values import Entry, entries, field_of

pytestmark = pytest.mark.postgres

SQL_TYPES = {
    "string": "text",
    "tinyint": "smallint",
    "float": "real",
    "double": "double precision",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
    "binary": "bytea",
}


def in_postgres(connection: psycopg.Connection, entry: Entry) -> str | None:
    """What COPY writes of the text as a value, None if it is refused."""
    kind = SQL_TYPES.get(entry.data_type, entry.data_type)
    query = sql.SQL("copy (select {}::text::{}, 1) to stdout (format csv)")
    try:
        with (
            connection.cursor() as cursor,
            cursor.copy(query.format(sql.Literal(entry.text), sql.SQL(kind))) as copy,
        ):
            return field_of(b"".join(map(bytes, copy)))
    except psycopg.DataError:
        return None


def test_each_text_becomes_what_the_page_says(postgres):
    found = {entry: in_postgres(postgres.connection, entry) for entry in entries()}
    differ = {entry: value for entry, value in found.items() if value != entry.in_postgres}
    assert not differ
