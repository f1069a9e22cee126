"""A corpus is read as its description says, or each file that is not is named with the reason."""

import json
from pathlib import Path
from typing import Any

import corpora
import pytest

FILES = {
    "files/title.csv": b"Report\nid,name\n1,ann\n2,bob\n",
    "files/short.csv": b"id,name\n1\n",
    "files/events.jsonl": b'{"id":1}\n{"id":2}\n',
    "clean/title.csv": b"id,name\n1,ann\n2,bob\n",
    "clean/other.csv": b"id,name\n1,ann\n2,eve\n",
}
TITLE = {"path": "files/title.csv", "options": {"skip_lines": 1}}
SHORT = {"path": "files/short.csv"}


def read(folder: Path, *described: dict[str, Any]) -> list[tuple[str, str | None]]:
    for name, data in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, described)))
    return list(corpora.problems(folder))


@pytest.mark.parametrize(
    ("described", "problem"),
    [
        ({**TITLE, "rows": 2, "clean": "clean/title.csv"}, None),
        ({**TITLE, "rows": 3}, "2 rows, not 3"),
        ({**TITLE, "clean": "clean/other.csv"}, "row 2 is ('2', 'bob'), not ('2', 'eve')"),
        ({**SHORT, "clean": "clean/title.csv"}, "refused at line 2, byte 8: expected 2 columns"),
        ({**SHORT, "refused": [2, 8]}, None),
        ({**SHORT, "options": {"missing_columns": "null"}, "refused": [2, 8]},
         "read (1 rows), and not refused at line 2, byte 8"),
        ({**SHORT, "options": {"skip_line": 1}}, "skip_line is not an option"),
        ({"path": "files/events.jsonl", "options": {"format": "jsonl"}, "rows": 2}, None),
    ],
)  # fmt: skip
def test_a_file_is_as_described_or_said_not_to_be(
    tmp_path: Path, described: dict[str, Any], problem: str | None
) -> None:
    [(path, found)] = read(tmp_path, described)
    assert path == described["path"]
    assert found == problem if problem is None else problem in str(found)


def test_the_exit_status_says_whether_all_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["corpora.py", str(tmp_path)])
    read(tmp_path, TITLE)
    with pytest.raises(SystemExit, match="0"):
        corpora.main()
    read(tmp_path, TITLE, SHORT)
    with pytest.raises(SystemExit, match="1"):
        corpora.main()
    assert "files/short.csv: refused at line 2" in capsys.readouterr().out
