"""Where Spark's Java process writes."""

import pytest

from dbt.adapters.mzs3.spark import java
from dbt.adapters.mzs3.spark.java import output_hint, write_output_to


@pytest.fixture(autouse=True)
def no_output(monkeypatch, tmp_path):
    monkeypatch.setattr(java, "_output", None)
    monkeypatch.chdir(tmp_path)


def say(text):
    with java.java_output() as file:
        file.write(text)


def test_the_file_is_added_to_and_makes_room_once_it_is_large(tmp_path, monkeypatch):
    monkeypatch.setattr(java, "_MAX_BYTES", 5)
    write_output_to(tmp_path / "logs")
    for text in (b"one ", b"two ", b"three"):
        say(text)
    assert (tmp_path / "logs" / "spark.log").read_bytes() == b"three"
    assert (tmp_path / "logs" / "spark.log.1").read_bytes() == b"one two "


def test_a_folder_that_cannot_be_written_leaves_the_console(tmp_path):
    (tmp_path / "logs").write_text("a file")
    write_output_to(tmp_path / "logs")
    with java.java_output() as file:
        assert file is None


def test_the_hint_names_the_file(tmp_path):
    assert "above" in output_hint()
    write_output_to(tmp_path / "logs")
    assert output_hint() == "logs/spark.log"
    write_output_to(tmp_path.parent)
    assert output_hint() == str(tmp_path.parent / "spark.log")
    write_output_to(None)
    assert "log file" in output_hint()
