"""Plants slips in a copy of the package, one at a time: the test that a slip names has to fail.

Run it as `python scripts/mutants.py [--seed N] [NAME …]`; `make test-mutants` tries all. A slip is
a patch in tests/mutants that begins with two lines:

    test: tests/unit/store/test_listings.py::test_a_key_that_begins_like_another_is_not_that_one
    slip: The first object whose key begins alike is taken for it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
QUICK = "not slow and not light and not long and not cluster"
COPIED = ("dbt", "tests", "scripts", "pyproject.toml")
AT_ONCE = 2
# Processes are forked once these, which take longest, are imported, and nothing of the package.
_SLOW = ["dbt.cli.main", "dbt.tests.fixtures.project", "moto", "hypothesis", "pyspark.sql"]
_PROCESSES = multiprocessing.get_context("forkserver")


@dataclass(frozen=True)
class Mutant:
    """A slip: its patch, the node id of the test that notices it, and what it is."""

    patch: Path
    test: str
    slip: str

    @classmethod
    def read(cls, patch: Path) -> Mutant:
        """Parses the first lines of a patch; raises ValueError if they are others."""
        lines = [line.partition(": ") for line in patch.read_text().splitlines()[:2]]
        if [key for key, _, _ in lines] != ["test", "slip"] or not all(text for *_, text in lines):
            raise ValueError(f"{patch}: begin it with the lines `test: NODE ID` and `slip: TEXT`")
        return cls(patch, lines[0][2], lines[1][2])

    def apply(self, folder: Path, *options: str) -> str | None:
        """Applies the patch in a folder; with `--check`, only tries. Returns what is wrong."""
        # Else git would look for a repository around the folder, and skip files outside of it.
        alone = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
        command = ["git", "apply", *options, str(self.patch)]
        done = subprocess.run(command, cwd=folder, env=alone, capture_output=True, text=True)
        if done.returncode == 0:
            return None
        return (
            f"tests/mutants/{self.patch.name} no longer applies ({done.stderr.strip()}). Make the "
            f"slip in the code as it is now ({self.slip}), put the output of `git diff -U2` below "
            "the patch's first two lines, and take the slip back"
        )


def mutants(root: Path = ROOT) -> list[Mutant]:
    """All slips, by name."""
    return [Mutant.read(patch) for patch in sorted((root / "tests" / "mutants").glob("*.patch"))]


def run_tests(folder: Path, tests: Iterable[str], seed: int) -> str:
    """Runs the tests on the package in a folder; returns the output of pytest."""
    process = _PROCESSES.Process(target=_run_pytest, args=(folder, sorted(tests), seed))
    process.start()
    process.join()
    return (folder / "output").read_text(errors="replace")


def _run_pytest(folder: Path, tests: Sequence[str], seed: int) -> None:
    with (folder / "output").open("w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    assert "dbt.adapters.mzs3" not in sys.modules
    for name in {"dbt", "dbt.adapters", "dbt.include"}.intersection(sys.modules):
        sys.modules[name].__path__.insert(0, str(folder / name.replace(".", "/")))
    options = ["-q", "--tb=line", "-p", "no:cacheprovider", "-m", QUICK, "--rootdir=."]
    # Pytest need not rewrite the asserts of what is imported already.
    options += [f"--hypothesis-seed={seed}", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    pytest.main([*options, *tests])


def fails(test: str, output: str) -> bool:
    """Whether pytest's output says that the test failed, with one of its parameters at least."""
    starts = f"FAILED {test} -", f"FAILED {test}["
    return any(f"{line} -".startswith(starts) for line in output.splitlines())


def problem_of(mutant: Mutant, base: Path, seed: int) -> str | None:
    """Plants one slip in a copy of the package, and runs its test. Returns what is wrong."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made).resolve()
        shutil.copytree(base / "dbt", folder / "dbt")  # with what is compiled of it
        for name in COPIED[1:]:
            (folder / name).symlink_to(base / name)
        if problem := mutant.apply(folder):
            return problem
        began = time.monotonic()
        output = run_tests(folder, [mutant.test], seed)
    word = "killed" if fails(mutant.test, output) else "LIVES"
    print(f"{word} after {time.monotonic() - began:.0f} s: {mutant.patch.stem}", flush=True)
    if word == "killed":
        return None
    return f"{mutant.patch.stem} lives: {mutant.slip} {mutant.test}:\n{output[-2000:]}"


def problems_of(found: Sequence[Mutant], seed: int, root: Path = ROOT) -> list[str]:
    """Tries all slips, `AT_ONCE` at a time; returns what is wrong with each that is not killed."""
    with tempfile.TemporaryDirectory() as made:
        base = Path(made).resolve()
        for name in COPIED:
            copy = shutil.copytree if (root / name).is_dir() else shutil.copy2
            copy(root / name, base / name)
        tests = {mutant.test for mutant in found}
        output = run_tests(base, tests, seed)
        if " passed" not in output or any(fails(test, output) for test in tests):
            return [f"tests fail without a slip, mend them first:\n{output[-4000:]}"]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return [*filter(None, pool.map(lambda one: problem_of(one, base, seed), found))]


def main() -> None:
    """Tries the slips of these names, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="the names of patches; all by default")
    parser.add_argument("--seed", type=int, default=1, help="of hypothesis and of Python's hashes")
    given = parser.parse_args()
    os.environ["PYTHONHASHSEED"] = str(given.seed)
    _PROCESSES.set_forkserver_preload(_SLOW)
    began = time.monotonic()
    found = [mutant for mutant in mutants() if not given.names or mutant.patch.stem in given.names]
    problems = problems_of(found, given.seed)
    print(f"{len(found)} slips, {len(problems)} problems, {time.monotonic() - began:.0f} s")
    sys.exit("\n".join(problems) or None)


if __name__ == "__main__":
    main()
