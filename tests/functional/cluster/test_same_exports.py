"""The same rows give the same files wherever Spark runs: their SHA-256 in the manifests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.spark.cluster_project import Project

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(1800)]

QUERY = """
select id, id % 3 as third, cast(id / 7D as decimal(20, 6)) as share, hash(id) / 7D as x,
    timestamp_micros(id * 1234567891) as at, if(id % 5 = 0, null, concat('line\\n "', id)) as text
from range(0, 5000, 1, 7)
"""
EXPORTS = {
    "plain": "header=true",
    "zipped": "compression='zstd', max_file_size='100kB'",
    "table": "format='parquet'",
    "folders": "partition_by=['third']",
    "folders_of_tables": "format='parquet', partition_by=['third']",
}


def exported(project: Project) -> dict[str, list[str]]:
    for name, options in EXPORTS.items():
        location = f"s3://{project.bucket}/{name.replace('_', '-')}"
        config = f"{{{{ config(location='{location}', parts=5, {options}) }}}}"
        (project.folder / "models" / f"{name}.sql").write_text(config + QUERY)
    code, console = project.run(*EXPORTS)
    assert code == 0, console
    assert project.open_uploads() == []
    return {name: project.sums(name) for name in EXPORTS}


@pytest.fixture(scope="module")
def expected() -> dict[str, dict[str, list[str]]]:
    """What `local[2]` writes, once the first test has asked."""
    return {}


@pytest.mark.parametrize("engine", ["cluster", "connect", "thrift"])
def test_an_engine_writes_what_a_local_spark_does(
    engine: str, expected: Any, on_local: Project, request: pytest.FixtureRequest
) -> None:
    if not expected:
        expected.update(exported(on_local))
        assert all(len(sums) == len(set(sums)) > 1 for sums in expected.values())
    make: Callable[[], Project] | Project = request.getfixturevalue(f"on_{engine}")
    project = make if isinstance(make, Project) else make()
    assert exported(project) == expected
