import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "environment.sh"

# Stands for an interpreter: `-c` asks for its version, `-m` runs a module.
INTERPRETER = """\
#!/bin/sh
case "$1 $2" in
  "-c "*) exit {too_old} ;;
  "-m {works}") for made do :; done
    mkdir -p "$made/bin" && cp "$0" "$made/bin/python" && echo {name} > "$made/made_by" ;;
  "-m pip") shift 2; echo "$*" >> .venv/pip_was_told; echo "pip says so"; exit {pip_fails} ;;
  *) echo "no module $2" >&2; exit 1 ;;
esac
"""


@pytest.fixture
def checkout(tmp_path):
    """A checkout with the script, and a PATH with the few programs it needs and no Python."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPT, tmp_path / "scripts")
    (tmp_path / "bin").mkdir()
    for program in ("sh", "cat", "cp", "dirname", "mkdir", "mktemp", "rm", "tail"):
        found = shutil.which(program)
        assert found is not None
        (tmp_path / "bin" / program).symlink_to(found)
    return tmp_path


def interpreter(checkout, name, *, too_old=0, works="venv", pip_fails=0):
    program = checkout / "bin" / name
    program.write_text(
        INTERPRETER.format(name=name, too_old=too_old, works=works, pip_fails=pip_fails)
    )
    program.chmod(0o755)


def run(checkout, extras="demo", **environment):
    return subprocess.run(
        [checkout / "scripts" / "environment.sh", extras],
        env={"PATH": str(checkout / "bin"), "TMPDIR": os.environ.get("TMPDIR", "/tmp")}
        | environment,
        capture_output=True,
        text=True,
    )


def made_by(checkout):
    return (checkout / ".venv" / "made_by").read_text().strip()


def test_the_project_is_installed_with_the_extras(checkout):
    interpreter(checkout, "python3")
    assert run(checkout).returncode == 0
    told = (checkout / ".venv" / "pip_was_told").read_text()
    what, stand_in, *project = told.rsplit(maxsplit=3)
    assert what == "install --disable-pip-version-check"
    assert project == ["-e", ".[demo]"]
    assert not Path(stand_in).exists()  # any more


def test_the_workers_python_gets_what_workers_need_and_nothing_else(checkout):
    interpreter(checkout, "python3")
    assert run(checkout, "workers").returncode == 0
    told = (checkout / ".venv" / "pip_was_told").read_text()
    assert told.startswith("install --disable-pip-version-check --target ")
    assert told.endswith(" pyarrow>=24 boto3>=1.36\n")
    assert (checkout / ".venv" / "workers" / "made_by").exists()


def test_a_python_that_is_too_old_is_passed_over(checkout):
    interpreter(checkout, "python3", too_old=1)
    interpreter(checkout, "python3.11")
    assert run(checkout).returncode == 0
    assert made_by(checkout) == "python3.11"


def test_virtualenv_does_where_venv_is_missing(checkout):
    interpreter(checkout, "python3", works="virtualenv")
    assert run(checkout).returncode == 0
    assert made_by(checkout) == "python3"


def test_the_python_that_the_caller_names_is_taken(checkout):
    interpreter(checkout, "python3")
    interpreter(checkout, "python3.12")
    assert run(checkout, PYTHON="python3.12").returncode == 0
    assert made_by(checkout) == "python3.12"


def test_without_a_suitable_python_the_error_says_what_to_install(checkout):
    interpreter(checkout, "python3", works="nothing")
    result = run(checkout)
    assert result.returncode == 1
    assert "no module venv" in result.stderr
    assert "apt install python3 python3-venv" in result.stderr


def test_pips_own_words_are_shown_when_it_fails(checkout):
    interpreter(checkout, "python3", pip_fails=1)
    result = run(checkout)
    assert result.returncode == 1
    assert "pip says so" in result.stderr
