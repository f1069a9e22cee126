"""Where the rows of an epoch are, and when they become a partition; Spark is a stand-in."""

from __future__ import annotations

from types import SimpleNamespace

from dbt.adapters.mzs3.csv_source.partitions import location_of

TABLE = [
    ("# Detailed", "string"),
    ("Location", "int"),
    ("# Partition Information", ""),
    ("# col_name", "data_type"),
    ("epoch", "string"),
    ("", ""),
]


class Described:
    """A session whose catalog describes every table by these rows."""

    def __init__(self, *rows: tuple[str, str]) -> None:
        self.rows = [{"col_name": name, "data_type": data_type} for name, data_type in rows]
        self.asked: list[str] = []

    def sql(self, text: str) -> SimpleNamespace:
        self.asked.append(text)
        return SimpleNamespace(collect=lambda: self.rows)


def test_a_place_is_found_whatever_the_columns_are_named() -> None:
    table = Described(*TABLE, ("# Detailed Table Information", ""), ("Location", "file:/w/t/"))
    assert location_of(table, "raw.t") == "file:/w/t"
    partition = Described(
        *TABLE,
        ("# Detailed Partition Information", ""),
        ("Location", "file:/w/t/own"),
        ("# Storage Information", ""),
        ("Location", "file:/w/t"),
    )
    assert location_of(partition, "raw.t", {"epoch": "7"}) == "file:/w/t/own"
    assert partition.asked == ["DESCRIBE TABLE EXTENDED raw.t PARTITION (`epoch` = '7')"]
