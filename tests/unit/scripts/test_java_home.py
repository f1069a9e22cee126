import subprocess
from pathlib import Path

import java_home
import pytest

SPEAKS = """\
#!/bin/sh
echo "    java.home = {home}" >&2
echo "    java.specification.version = {version}" >&2
"""


def fake_java(folder: Path, script: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(script)
    java.chmod(0o755)
    return java


@pytest.fixture
def java17(tmp_path: Path) -> Path:
    home = tmp_path / "java 17"
    fake_java(home, SPEAKS.format(home=home, version="17"))
    return home


def test_java_home_comes_before_the_path(tmp_path, java17):
    other = tmp_path / "other"
    fake_java(other, SPEAKS.format(home=other, version="21"))
    environment = {"JAVA_HOME": str(java17), "PATH": str(other / "bin")}
    assert java_home.system_java_home(environment) == java17


def test_the_home_is_what_the_java_on_the_path_says(tmp_path, java17):
    shim = fake_java(tmp_path / "shims", SPEAKS.format(home=java17, version="17"))
    assert java_home.system_java_home({"PATH": str(shim.parent)}) == java17


@pytest.mark.parametrize("version", ["1.8", "11", "16"])
def test_an_older_java_is_passed_over(tmp_path, java17, version):
    old = tmp_path / "old"
    fake_java(old, SPEAKS.format(home=old, version=version))
    environment = {"JAVA_HOME": str(old), "PATH": str(java17 / "bin")}
    assert java_home.system_java_home(environment) == java17


def test_a_java_that_refuses_sparks_arguments_is_passed_over(tmp_path):
    script = '#!/bin/sh\n[ "$1" != --add-modules=jdk.incubator.vector ]\n'
    refusing = fake_java(tmp_path / "jre", SPEAKS.format(home="/", version="21") + script)
    assert java_home.usable_home(refusing) is None


def test_no_java_is_no_error(tmp_path):
    assert java_home.system_java_home({"PATH": str(tmp_path)}) is None
    assert java_home.system_java_home({"JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)}) is None


def test_the_launcher_drops_the_one_argument_and_keeps_the_others_as_they_are(tmp_path):
    runtime = tmp_path / "a runtime"
    fake_java(runtime, '#!/bin/sh\nprintf "%s\\n" "$@"\n')
    home = tmp_path / "home"
    java_home.build_java_home(home, runtime)
    arguments = ["-Dx=a b", java_home.VECTOR_MODULE, "", "-cp", "*", "Main", 'it"s', "last"]
    launched = subprocess.run(
        [home / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    )
    arguments.remove(java_home.VECTOR_MODULE)
    assert launched.stdout.splitlines() == arguments


def test_building_again_follows_a_runtime_that_has_moved(tmp_path):
    home = tmp_path / "home"
    for name in ("first", "second"):
        runtime = tmp_path / name
        fake_java(runtime, f"#!/bin/sh\necho {name}\n")
        (runtime / "lib").mkdir()
        java_home.build_java_home(home, runtime)
    launched = subprocess.run([home / "bin" / "java"], capture_output=True, text=True, check=True)
    assert launched.stdout == "second\n"
    assert (home / "lib").resolve() == tmp_path / "second" / "lib"


def test_the_packaged_runtime_takes_sparks_arguments_through_the_launcher(tmp_path):
    runtime = java_home.packaged_runtime()
    assert runtime is not None
    assert java_home.usable_home(runtime / "bin" / "java") is None
    java_home.build_java_home(tmp_path, runtime)
    assert java_home.usable_home(tmp_path / "bin" / "java") == runtime.resolve()
