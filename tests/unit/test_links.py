"""What the docs name is there: files, headings as GitHub names them, and tests."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("docs", "sample_project", "benchmarks", "scripts", "dbt", "tests")
MADE = {"target", "logs", "dbt_packages", "__pycache__"}
PAGES = sorted(
    page
    for place in (ROOT, *(ROOT / name for name in PLACES))
    for page in (place.glob("*.md") if place == ROOT else place.rglob("*.md"))
    if not MADE & set(page.parts)
)
SOURCES = [
    path
    for name in ("dbt", "scripts", "benchmarks")
    for path in sorted((ROOT / name).rglob("*"))
    if path.suffix in {".py", ".sql", ".yml", ".sh", ".css"} and not MADE & set(path.parts)
]

_FENCE = re.compile(r"^ {0,3}(```|~~~).*?^ {0,3}\1[`~]*\s*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)(?:\s+#+)?\s*$", re.MULTILINE)
_ANCHOR = re.compile(r"<a\s+(?:name|id)=[\"']([^\"']+)", re.IGNORECASE)
_INLINE = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+[\"'(][^)]*)?\)")
_DEFINED = re.compile(r"^ {0,3}\[([^\]]+)\]:\s*<?([^\s>]+)", re.MULTILINE)
_BY_NAME = re.compile(r"\[([^\]\[]+)\]\[([^\]\[]*)\]")
_TAG = re.compile(r"<(?:a|img)\s[^>]*?(?:href|src)=[\"']([^\"']+)", re.IGNORECASE)
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_NAMED_TEST = re.compile(r"([\w/.-]+\.py)::([\w:]+)")
_CELLS = re.compile(r"(?<!\\)\|")
_NAMED_FILE = re.compile(rf"(?<![\w./-])(?:{'|'.join(PLACES)})/[\w./-]*\w\.[a-z]+\b")


def slugs(text: str) -> set[str]:
    """The anchors of a page: those of its headings, as GitHub makes them, and those it sets."""
    seen: Counter[str] = Counter()
    found = set(_ANCHOR.findall(text))
    for title in _HEADING.findall(_FENCE.sub("", text)):
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", title)
        kept = re.sub(r"[^\w\- ]", "", plain.lower())
        slug = kept.replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def links(text: str) -> Iterator[str]:
    """Where the links of a page lead, but for those in code."""
    prose = _CODE.sub("code", _FENCE.sub("", text))
    yield from _INLINE.findall(prose)
    yield from _TAG.findall(prose)
    defined = {name.lower(): target for name, target in _DEFINED.findall(prose)}
    yield from defined.values()
    for shown, name in _BY_NAME.findall(prose):
        yield defined.get((name or shown).lower(), f"[{name or shown}]")


def dead(page: Path, target: str) -> str | None:
    """What is wrong with a link on the page; None for one that leads somewhere, or to the web."""
    if _ELSEWHERE.match(target):
        return None
    path, _, anchor = target.partition("#")
    aim = (page.parent / unquote(path)).resolve() if path else page
    if not aim.exists():
        return f"{target}: there is no such file"
    if ROOT not in aim.parents and aim != ROOT:
        return f"{target}: is outside of the repository"
    if anchor and (aim.suffix != ".md" or unquote(anchor) not in slugs(aim.read_text())):
        return f"{target}: there is no such heading"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_and_anchor_leads_somewhere(page: Path) -> None:
    problems = [dead(page, target) for target in links(page.read_text())]
    assert [problem for problem in problems if problem is not None] == []


def test_every_file_that_is_named_exists() -> None:
    """In the docs, and in the texts and comments of the code."""
    assert [
        f"{path.relative_to(ROOT)}: {name}"
        for path in (*PAGES, *SOURCES)
        for name in _NAMED_FILE.findall(path.read_text())
        if not any((base / name).exists() for base in (ROOT, path.parent))
    ] == []


@cache
def names_of_tests(path: Path) -> frozenset[str]:
    """What pytest calls the tests of a file, but for those that a class inherits."""
    found = set()
    for node in ast.parse(path.read_text()).body if path.exists() else []:
        prefix = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        for one in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(one, ast.FunctionDef) and one.name.startswith("test_"):
                found.add(prefix + one.name)
    return frozenset(found)


def missing_tests(text: str) -> list[str]:
    """The tests that a text names, as `file::[Class::]test`, and that are not there."""
    named = sorted(set(_NAMED_TEST.findall(text)))
    return [f"{path}::{name}" for path, name in named if name not in names_of_tests(ROOT / path)]


def unanswered(text: str) -> list[str]:
    """The rows of a table whose third and last cell has no test and no reason.

    A reason has a link. A row that is a heading, in bold, needs nothing.
    """
    rows = [_CELLS.split(line)[1:-1] for line in text.splitlines() if line.startswith("|")]
    kinds = r"::\w+`|^ (Different|The same): .*\]\("
    return [
        "|".join(cells)
        for cells in rows
        if len(cells) != 3
        or not (
            re.fullmatch(r" ?(\*\*.+\*\*|---|the document) ?", cells[0])
            or re.search(kinds, cells[2])
        )
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_test_that_is_named_exists(page: Path) -> None:
    assert missing_tests(page.read_text()) == []


def test_every_line_of_the_design_documents_has_an_answer() -> None:
    assert unanswered((ROOT / "docs" / "seeds.md").read_text()) == []


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    pages = [
        page.relative_to(ROOT / "docs").as_posix()
        for page in PAGES
        if page.is_relative_to(ROOT / "docs")
    ]
    named = [page for page in pages if not page.startswith("decisions/0")]
    assert [page for page in named if f": {page}\n" not in navigation] == []


def test_what_is_dead_is_found() -> None:
    page = ROOT / "README.md"
    text = (
        "# A `b_c` D, *e* — [f](g)!\n# x\n# x\n```\n# no heading [no](link)\n```\n"
        "[a](CONTRIBUTING.md#layout) [b](nowhere.md 'title') ![c](<docs/types.md#not-there>)\n"
        "`[no](link)` [d][e] [f][] <a href='gone.md'> [w](https://example.com/#x)\n\n"
        "[e]: #gone\n"
    )
    assert _NAMED_FILE.findall("see docs/gone.md, a/docs/x.md or docs/") == ["docs/gone.md"]
    assert slugs(text) == {"a-b_c-d-e--f", "x", "x-1"}
    assert [problem for target in links(text) if (problem := dead(page, target))] == [
        "g: there is no such file",
        "nowhere.md: there is no such file",
        "docs/types.md#not-there: there is no such heading",
        "gone.md: there is no such file",
        "#gone: there is no such heading",
        "#gone: there is no such heading",
        "[f]: there is no such file",
    ]


def test_a_test_that_is_not_there_is_found() -> None:
    here, adapter = "tests/unit/test_links.py::", "tests/functional/export/test_flag.py::"
    there = ["test_what_is_dead_is_found", f"{adapter}TestCopyTurnedOff::test_exports_fail_before"]
    text = f"`{here}{there[0]}` `{there[1]}_anything_is_created`"
    assert missing_tests(text) == []
    wrong = [f"{adapter}{there[0]}", there[1], f"{here}dead", "tests/unit/gone.py::test_x"]
    assert missing_tests(f"{text} `{'`, `'.join(wrong)}`") == sorted(wrong)


def test_a_line_without_an_answer_is_found() -> None:
    fine = (
        "| the document | x | y |\n| --- | --- | --- |\n| **Goals** | | |\n"
        "| a \\| b | c | `t.py::x` |\n| a | | Different: as [b](c.md) |\n"
        "| a | | The same: [b](c.md) |\n"
    )
    assert unanswered(fine) == []
    open_ones = ["a | b | ", "a | [b](c.md) | Different: so it is", "a | `t.py::x` | yes", "a | b"]
    rows = "".join(f"| {row} |\n" for row in open_ones)
    assert unanswered(fine + rows) == [f" {row} " for row in open_ones]
