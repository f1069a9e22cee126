"""The names of files: known again, and never given twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.mzs3.upload.names import NO_NAMES, UsedNames, is_file_name


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
def test_numbers_only_grow(numbers: list[int]) -> None:
    names = [f"part-0000-{number:04d}.csv" for number in numbers]
    used = NO_NAMES.with_names(names)
    assert used.next_number == max(numbers, default=0) + 1
    assert not any(used.allows([name]) for name in names)
    assert used.allows([f"d=1/part-0003-{used.next_number:04d}.csv"])


def test_a_chosen_name_is_used_up_too() -> None:
    used = NO_NAMES.with_names(["all.csv", "part-0000-0007.csv"])
    assert used == UsedNames(8, ("all.csv",))
    assert not used.allows(["all.csv"])
    assert used.allows(["other.csv"])
