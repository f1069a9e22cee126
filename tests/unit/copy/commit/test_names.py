"""The names of files: known again, and never given twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.mzs3.copy.commit.names import (
    GENERATION,
    first_free_number,
    first_number_of,
    is_file_name,
)


@pytest.mark.parametrize(
    "name",
    [
        "part-0000-0001.csv",
        "part-0000-0001.csv.gz",
        "part-12345-10001.parquet",
        "country=NZ/day=2024-01-01/part-0000-0001.csv.zst",
        "a b=%2F/part-0000-0001.csv",
    ],
)
def test_names_of_files(name: str) -> None:
    folders = [folder.partition("=")[0] for folder in name.split("/")[:-1]]
    assert is_file_name(name, partition_by=folders)


def test_folders_of_another_export_are_not_ours() -> None:
    assert not is_file_name("day=1/part-0000-0001.csv")
    assert not is_file_name("day=1/part-0000-0001.csv", partition_by=["country"])
    assert is_file_name("in%3Dside=1/part-0000-0001.csv", partition_by=["in=side"])


@pytest.mark.parametrize(
    "name", ["part-0-1.csv", "x/part-0000-0001.csv", "part-0000-0001.txt", "_manifest.json"]
)
def test_names_of_others(name: str) -> None:
    assert not is_file_name(name)


def test_a_single_file_has_the_name_it_was_given() -> None:
    assert is_file_name("all.csv", "all.csv")
    assert not is_file_name("all.csv")


@given(st.lists(st.integers(1, 40_000), max_size=20))
def test_a_generation_of_free_numbers_follows(numbers: list[int]) -> None:
    first = first_free_number(f"part-0000-{number:04d}.csv" for number in numbers)
    assert not {*range(first, first + GENERATION)}.intersection(numbers)


def test_overwrites_go_back_and_forth() -> None:
    assert first_free_number([]) == 1
    assert first_free_number(["part-0000-0001.csv"]) == 5001
    assert first_free_number(["d=1/part-0000-5001.csv"]) == 1
    assert first_number_of(["d=1/part-0000-5001.csv", "d=1/part-0000-5002.csv"]) == 5001
    assert first_number_of([]) == 1
