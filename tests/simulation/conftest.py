"""What explorations count, beside the numbers of the docs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.interleavings import Explored

PAGE = Path(__file__).parents[2] / "docs" / "inside" / "simulation.md"
REWRITES = "MZS3_COUNT"
COMMAND = f"{REWRITES}=1 python -m pytest -m 'not long' tests/simulation"
_ROW = "| {name} | {target} | {counted.situations:,} | {counted.orders:,} | {counted.ends:,} |\n"


@pytest.fixture
def tell(
    capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> Iterator[Callable[[Explored], None]]:
    """Prints how much was tried, and requires that the docs say the same of the test.

    Explorations are deterministic: another number means that the code, or a scene, has changed.
    Of long tests the docs say nothing.
    """
    counted = Explored()

    def told(explored: Explored) -> None:
        for name, number in vars(explored).items():
            setattr(counted, name, getattr(counted, name) + number)
        with capsys.disabled():
            print(f"\n  {request.node.name}: {explored}", end="")

    yield told
    marks = {mark.name for mark in request.node.iter_markers()}
    if counted.situations and "long" not in marks:
        target = "test-rest" if "slow" in marks else "test"
        _require_row(_words(request.node.name), target, counted)


def _words(test: str) -> str:
    name, _, parameters = test.removeprefix("test_").partition("[")
    return ": ".join(filter(None, [name.replace("_", " "), parameters.rstrip("]")]))


def _require_row(name: str, target: str, counted: Explored) -> None:
    row = _ROW.format(name=name, target=f"`make {target}`", counted=counted)
    text = PAGE.read_text()
    if row in text:
        return
    if not os.environ.get(REWRITES):
        pytest.fail(f"docs/inside/{PAGE.name} lacks this row; if that is right: {COMMAND}\n{row}")
    head, line, rows = text.partition("| --- | --- | --- | --- | --- |\n")
    others = [other for other in rows.splitlines(True) if not other.startswith(f"| {name} |")]
    PAGE.write_text(head + line + "".join(sorted([*others, row])))
