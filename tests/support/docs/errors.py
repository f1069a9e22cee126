"""The page of errors, the texts in the code that it must have, and those that tests read.

Where a text has something put into it, that is `GAP` here: `{name}` in the code, `<name>` and
`…` on the page, wildcards of regular expressions in tests.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "s3-csv-source" / "errors.md"
PACKAGE = ROOT / "dbt" / "adapters" / "mzs3"
GAP = "\0"
LEAST_WORDS = 3
"""A piece of a text with fewer words tells nothing by itself."""
WORDS_READ = 4
"""A test that has so many words of an error in a row, which no other error has, reads it."""

# The dialect is both packages', and the doors between dbt and sources have errors of their own.
_OTHERS = (
    "formats/dialect.py",
    "operations/sources.py",
    "project/freshness.py",
    "project/sources.py",
    "project/staging.py",
)
# What these say of a value or of the source is shown in other words, or is no error.
_NO_ERRORS = (
    "convert.py",
    "json_chunks.py",
    "preview.py",
    "show_definition.py",
    "report.py",
    "permissions.py",
)
# Parts of errors that are on the page as `<what>`, and what the log says of success.
_NO_ERROR_TEXTS = frozenset(
    {
        "To do so",
        "to go on without it",
        "a block does not end in the file's sync marker",
        "a block has bytes behind its last record",
        "a block of",
        "a block of less than no records",
        "a block that does not decompress as a whole",
        "a block whose checksum is another",
        "a length of",
        "a number of more than 64 bits",
        "a special value",
        "a type that contains itself",
        "a text that is not shown",
        "did you mean",
        "every object again",
        "is not one of them",
        "it does not begin as an object container file",
        "its header has no schema",
        "its schema has two fields of the same name",
        "its schema is not one of Avro",
        "its schema is of type",
        "it is encrypted",
        "a block that decompresses to more than",
        "keep, tag, {tag: {name: value}}, {move: s3://bucket/prefix/}, delete",
        "looking for s3://",
        "encrypted metadata|Cannot decrypt|noted as encrypted|Decryption not set",
        "narrow pattern so that it is left out",
        "too much memory",
        "no values were compared",
        "object that was",
        "objects that were",
        "only what the queue announces from then on",
        "rows and says",
        "rows taken out",
        "s3:DeleteObject on it",
        "s3:GetObjectTagging and s3:PutObjectTagging",
        "str | None]",
        "the queue told of",
        "string, boolean, tinyint, smallint, int, bigint, float, double, decimal(p,s), date, "
        "timestamp, timestamp_ntz, binary",
        "the connection ended early",
        "can't be read in ranges",
        "to be taken again by the next run",
        "values were compared",
        "what is still in the location",
        "which has none",
        "--full-refresh leaves what is ingested as it is",
    }
)
_ROW = re.compile(r"^\| (`+)(.+?)\1 \|([^|]*)\|([^|]*)\|$", re.MULTILINE)
_GAPS = re.compile(r"<\w+>|…")
_SQL = re.compile(
    r"\w`? (string|bigint|binary|int)\b|\b(AS|IS|AND|OR|NOT|THEN|EXCEPT) [`(]?\w+"
    r"|\w (=|>|>=) \w|struct\("
)
_WILDCARD = re.compile(r"\\[wdSs][*+]?|\.[*+]\??|\[\^?[^\]]*\][*+]")
_MARKS = " .;:,^$()'\"`\n|?"


@dataclass(frozen=True)
class Entry:
    """One row of the page; `text` as it stands there, without its backticks."""

    text: str
    cause: str
    way_out: str

    @cached_property
    def words(self) -> frozenset[tuple[str, ...]]:
        """Its words in a row, as many as a test must have."""
        return frozenset(_in_a_row(_GAPS.sub(GAP, self.text)))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(".*".join(map(re.escape, _GAPS.split(self.text))), re.DOTALL)

    def matches(self, text: str) -> bool:
        """Whether a whole error has this text."""
        longest = max(_GAPS.split(self.text), key=len)
        return longest in text and self._pattern.fullmatch(text) is not None


@cache
def entries() -> list[Entry]:
    """All rows of the page's tables but their headings."""
    rows = _ROW.findall(PAGE.read_text())
    return [Entry(text, cause.strip(), way_out.strip()) for _, text, cause, way_out in rows]


@cache
def page_text() -> str:
    """The page without its marks."""
    return _GAPS.sub(GAP, PAGE.read_text().replace("`", ""))


def texts_in_code() -> Iterator[tuple[str, str]]:
    """Where there is a text that users may read as an error or a warning, and its first words.

    By the way they are written: in lower case at their start, of several words; what begins in
    upper case is SQL, or says what to do. What comes behind may be on the page in other words.
    """
    rooms = [PACKAGE / "source", PACKAGE / "ledger", PACKAGE / "formats" / "read"]
    modules = [path for room in rooms for path in room.rglob("*.py")]
    modules += [PACKAGE / name for name in _OTHERS]
    for path in sorted(modules):
        if path.name in _NO_ERRORS:
            continue
        for line, text in texts_of(path):
            start = re.search(r"[A-Za-z\0]", text)
            if start is None or start[0].isupper() or _SQL.search(text):
                continue
            pieces = [piece.strip(_MARKS) for piece in text.split(GAP)]
            first = next((piece for piece in pieces if _is_telling(piece)), None)
            if first is not None and (words := _first_clause(first)) not in _NO_ERROR_TEXTS:
                yield f"{path.relative_to(ROOT)}:{line}", words


def is_read(entry: Entry) -> bool:
    """Whether a test has this error in whole, or words of it that no other entry has."""
    counts = _words_on_page()
    own = {words for words in entry.words if counts[words] == 1}
    return not own.isdisjoint(_words_in_tests()) or any(map(entry.matches, _texts_in_tests()))


@cache
def _words_on_page() -> Counter[tuple[str, ...]]:
    return Counter(words for entry in entries() for words in entry.words)


@cache
def _words_in_tests() -> frozenset[tuple[str, ...]]:
    return frozenset(words for text in _texts_in_tests() for words in _in_a_row(text))


@cache
def _texts_in_tests() -> frozenset[str]:
    """The texts of tests, without what makes patterns of them, or puts a source's name first."""
    modules = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    found = {text for path in modules for _, text in texts_of(path)}
    found |= {re.sub(r"\\(.)", r"\1", _WILDCARD.sub(GAP, text)) for text in found}
    return frozenset(text.strip("^$").removeprefix("lake.orders: ") for text in found)


def texts_of(path: Path) -> Iterator[tuple[int, str]]:
    """Every text of a module that is no docstring, with its line."""
    tree = ast.parse(path.read_text())
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if id(node) in docstrings:
            continue
        inner: Iterable[ast.AST] = ast.iter_child_nodes(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            known = [str(v.value) if isinstance(v, ast.Constant) else GAP for v in node.values]
            yield node.lineno, "".join(known)
            inner = [v for v in node.values if isinstance(v, ast.FormattedValue)]
        waiting += inner


def _in_a_row(text: str) -> Iterator[tuple[str, ...]]:
    for piece in text.split(GAP):
        words = [word.strip(_MARKS) for word in piece.split()]
        for start in range(len(words) - WORDS_READ + 1):
            yield tuple(words[start : start + WORDS_READ])


def _first_clause(piece: str) -> str:
    clauses = re.split(r"(?<=[.;:,]) ", piece)
    clause = next((one for one in clauses if _is_telling(one)), piece)
    return clause.strip(_MARKS).replace("`", "")


def _is_telling(piece: str) -> bool:
    return len(piece.split()) >= LEAST_WORDS
