"""What a user asks a page for: all that is wrong with it, before Spark is."""

from pathlib import Path

import pytest

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.export.report.read import ReportRequest


def problems(*arguments):
    with pytest.raises(ConfigError) as caught:
        ReportRequest.of(*arguments)
    return caught.value.problems


def test_arguments_that_are_right():
    assert ReportRequest.of("analytics", "target/new/r.html", 90) == ReportRequest(
        "analytics", Path("target/new/r.html"), 90
    )
    assert ReportRequest.of("lake.sales", "r.html", 3660).schema == "lake.sales"


def test_all_that_is_wrong_is_named_at_once():
    assert [problem.split()[0] for problem in problems(5, " ", 0)] == ["schema", "days", "path"]


@pytest.mark.parametrize("days", [True, 1.5, "7", None, 3661])
def test_days_are_a_whole_number(days):
    [problem] = problems("s", "x.html", days)
    assert problem == f"days must be a whole number from 1 to 3660, not {days!r}"


@pytest.mark.parametrize("schema", [None, 5, "", " ", "lake.", ".sales", "a..b", ["s"]])
def test_a_schema_is_a_name_or_one_in_a_catalog(schema):
    [problem] = problems(schema, "x.html", 1)
    assert problem == (
        f"schema must be a name such as analytics or catalog.schema, not {schema!r}"
    )


@pytest.mark.parametrize("path", [None, 5, "", " "])
def test_a_path_is_a_text(path):
    [problem] = problems("s", path, 1)
    assert problem == f"path must name a file, such as target/copy_report.html, not {path!r}"


@pytest.mark.parametrize(
    ("path", "better"),
    [
        (".", "copy_report.html"),
        ("..", "../copy_report.html"),
        ("there", "there/copy_report.html"),
        ("not_there/", "not_there/copy_report.html"),
    ],
)
def test_a_directory_is_no_file(path, better, tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path)
    [problem] = problems("s", path, 1)
    assert problem == (
        f"path must name a file, and {path!r} is a directory; a file in it would be {better!r}"
    )
