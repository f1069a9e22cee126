"""Slips are planted where the code has a place for them, and noticed by tests that there are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mutants
import pytest
from mutants import Mutant

FOUND = mutants.mutants()
CODE = "LIMIT = 3\n\n\ndef fits(size):\n    return size <= LIMIT\n"
SLIP = """test: tests/test_fits.py::test_{test}
slip: What is as large as the limit does not fit.
--- a/dbt/fits.py
+++ b/dbt/fits.py
@@ -4,2 +4,2 @@
 def fits(size):
-    return size <= LIMIT
+    return size < LIMIT
"""
TESTS = """
from fits import fits

def test_limit():
    assert fits(3)

def test_less():
    assert fits(2)

def test_more():
    assert fits(4)
"""


def test_there_are_enough() -> None:
    assert len(FOUND) >= 40


@pytest.mark.parametrize("mutant", FOUND, ids=lambda mutant: mutant.patch.stem)
def test_a_slip_can_be_planted(mutant: Mutant) -> None:
    assert mutant.apply(mutants.ROOT, "--check") is None


def test_each_is_noticed_by_a_test_of_the_quick_ones() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", mutants.QUICK]
    tests = sorted({mutant.test for mutant in FOUND})
    options = ["-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        [*command, *options, *tests], cwd=mutants.ROOT, capture_output=True, text=True
    )
    collected = done.stdout.splitlines()
    lacking = [test for test in tests if not any(line.startswith(test) for line in collected)]
    assert not lacking, done.stdout + done.stderr


def test_quick_are_the_tests_of_make_test() -> None:
    assert f'-m "{mutants.QUICK}"' in (mutants.ROOT / "Makefile").read_text()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in mutants.COPIED[:3]:
        (tmp_path / name).mkdir()
    (tmp_path / "tests" / "mutants").mkdir()
    (tmp_path / "dbt" / "fits.py").write_text(CODE)
    (tmp_path / "tests" / "test_fits.py").write_text(TESTS)
    settings = f'[tool.pytest.ini_options]\npythonpath = ["dbt"]\nmarkers = {["slow"]}\n'
    (tmp_path / "pyproject.toml").write_text(settings)
    return tmp_path


def planted(root: Path, name: str, test: str) -> None:
    (root / "tests" / "mutants" / f"{name}.patch").write_text(SLIP.format(test=test))


def test_a_slip_that_its_test_does_not_notice_is_told_of(root: Path) -> None:
    planted(root, "good", "limit")
    planted(root, "weak", "less")
    [lives] = mutants.problems_of(mutants.mutants(root), 1, root)
    assert lives.startswith("weak lives: What is as large as the limit does not fit. ")
    assert "tests/test_fits.py::test_less:\n" in lives
    assert "1 passed" in lives
    assert (root / "dbt" / "fits.py").read_text() == CODE


@pytest.mark.parametrize("test", ["more", "none"])
def test_a_test_that_fails_anyway_notices_nothing(root: Path, test: str) -> None:
    planted(root, "good", "limit")
    planted(root, "broken", test)
    [problem] = mutants.problems_of(mutants.mutants(root), 1, root)
    assert problem.startswith("tests fail without a slip, mend them first:\n")
    assert f"test_{test}" in problem


def test_a_patch_that_has_lost_its_place_says_what_to_do(root: Path) -> None:
    planted(root, "good", "limit")
    [mutant] = mutants.mutants(root)
    assert mutant.apply(root, "--check") is None
    (root / "dbt" / "fits.py").write_text(CODE.replace("LIMIT", "MOST"))
    [problem] = mutants.problems_of([mutant], 1, root)
    assert problem.startswith("tests/mutants/good.patch no longer applies (error: patch failed")
    assert problem.endswith("and take the slip back")


def test_a_slip_says_which_test_and_what_it_is(root: Path) -> None:
    path = root / "tests" / "mutants" / "a.patch"
    path.write_text("slip: A slip.\n")
    with pytest.raises(ValueError, match="begin it with the lines"):
        mutants.mutants(root)
