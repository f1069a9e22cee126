"""The layers keep to themselves: workers need no dbt, work needs no dbt, doors are few."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Collection, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import dbt.adapters.mzs3.errors as anchor
from dbt.adapters.mzs3.spark.job import SHIPPED as SENT

PACKAGE = Path(anchor.__file__).parent
OURS = "dbt.adapters.mzs3"
DOORS = {
    "__init__.py",
    "catalogs.py",
    "connections.py",
    "credentials.py",
    "impl.py",
    "dbt_log.py",
    "operations",
    "project",
    "python_job.py",
    "runner.py",
}
SHIPPED = (
    "arrow",
    "options",
    "store",
    "formats",
    "ledger/table_files.py",
    "upload/folders.py",
    "upload/progress.py",
    "upload/spec.py",
    "upload/task.py",
    "upload/file_upload.py",
    "source/executor",
    "shard/batch",
    "shard/codec",
    "shard/types.py",
    "types",
    "errors.py",
    "names.py",
    "secrets.py",
    "text.py",
    "worker.py",
)
# Each room imports from those before it; features, which come last, not from each other.
ROOMS = (
    *("text", "secrets", "errors", "names", "worker", "types", "arrow", "options", "formats"),
    *("store", "spark", "submit", "rows", "events", "upload", "ledger"),
)
FEATURES = ("export", "source", "shard")
FOR_EXECUTORS = {"pyarrow", "boto3", "botocore", *sys.stdlib_module_names}
# Imported only where an object of that format is read, which says so if the package is missing.
OPTIONAL_FOR_EXECUTORS = {"formats/read/avro.py": {"fastavro"}}
NOT_OVER_CONNECT = {"_jvm", "_jdf", "_jsparkSession", "sparkContext", "_sc", "rdd"}
# Of the Spark in this process alone.
CLASSIC_ONLY = {"spark/engine.py", "spark/java.py", "spark/session.py"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def is_in(path: Path, parts: Collection[str]) -> bool:
    return any(name_of(path) == part or name_of(path).startswith(f"{part}/") for part in parts)


def is_shipped(path: Path) -> bool:
    return is_in(path, SHIPPED)


@functools.cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text())))


def imported(path: Path) -> Iterator[str]:
    """Every module that a file imports when it runs, by its full name."""
    for_types = {
        id(child)
        for node in nodes_of(path)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for child in ast.walk(node)
    }
    for node in nodes_of(path):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)


@pytest.mark.parametrize("path", [p for p in modules() if is_shipped(p)], ids=name_of)
def test_executor_code_imports_only_what_a_cluster_has(path: Path) -> None:
    for module in imported(path):
        if module.startswith(f"{OURS}."):
            inner = PACKAGE / (module.removeprefix(f"{OURS}.").replace(".", "/") + ".py")
            assert is_shipped(inner), module
        else:
            optional = OPTIONAL_FOR_EXECUTORS.get(name_of(path), set())
            assert module.split(".")[0] in FOR_EXECUTORS | optional, module


def test_what_executors_import_travels_with_the_job() -> None:
    sent = tuple(name.replace(".", "/") for name in SENT)
    assert [part for part in SHIPPED if not part.startswith(sent)] == []


def room_of(name: str) -> str:
    return name.split("/")[0].removesuffix(".py")


@pytest.mark.parametrize("room", [*ROOMS, *FEATURES])
def test_rooms_import_from_those_below(room: str) -> None:
    below = {room, "__version__", *(ROOMS if room in FEATURES else ROOMS[: ROOMS.index(room)])}
    above = [
        f"{name_of(path)}: {module}"
        for path in modules()
        if room_of(name_of(path)) == room
        for module in imported(path)
        if module.startswith(f"{OURS}.")
        and module.removeprefix(f"{OURS}.").split(".")[0] not in below
    ]
    assert above == []


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_the_store_alone_knows_what_carries_its_requests(path: Path) -> None:
    """Not for types either."""
    named = {
        module.split(".")[0]
        for node in nodes_of(path)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for module in [*(one.name for one in node.names), str(getattr(node, "module", ""))]
    }
    transports = {name for name in named if name.startswith(("boto3", "botocore", "mypy_boto3"))}
    assert is_in(path, ["store"]) or not transports | (named & {"urllib3", "s3transfer"})


@pytest.mark.parametrize(("name", "packages"), OPTIONAL_FOR_EXECUTORS.items())
def test_optional_packages_are_imported_inside_functions(name: str, packages: set[str]) -> None:
    module = ast.parse((PACKAGE / name).read_text())
    at_once = [ast.unparse(one) for one in module.body if isinstance(one, ast.Import)]
    assert not {text.split()[1] for text in at_once} & packages
    assert packages <= set(imported(PACKAGE / name))


@pytest.mark.parametrize("path", [p for p in modules() if not is_in(p, DOORS)], ids=name_of)
def test_work_is_plain_python_without_dbt(path: Path) -> None:
    foreign = [
        module
        for module in imported(path)
        if module.split(".")[0] in {"dbt", "dbt_common", "agate"} and not module.startswith(OURS)
    ]
    assert foreign == []


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_jobs_use_dataframes_only(path: Path) -> None:
    used = {node.attr for node in nodes_of(path) if isinstance(node, ast.Attribute)}
    assert name_of(path) in CLASSIC_ONLY or not used & NOT_OVER_CONNECT


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Not for its types either."""
    names = {module_of(path): path for path in modules()}
    graph = {name: {*own_imports(path, names)} - {name} for name, path in names.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as exc:
        pytest.fail(" imports ".join(reversed(exc.args[1])))


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join([OURS, *(part for part in parts if part != "__init__")])


def own_imports(path: Path, names: Collection[str]) -> Iterator[str]:
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            of_names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (one if one in names else node.module for one in of_names)


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_files_stay_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 500


@pytest.mark.parametrize("door", sorted(DOORS))
def test_doors_exist(door: str) -> None:
    assert (PACKAGE / door).exists()


@pytest.mark.parametrize("path", list(filter(is_shipped, modules())), ids=name_of)
def test_what_travels_imports_its_own_at_the_top(path: Path) -> None:
    """A module that a function imports is not seen when the function is made to travel."""
    functions = (
        node
        for node in nodes_of(path)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )
    inside = [
        node.module
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(OURS)
    ]
    assert inside == []


def test_folders_do_not_import_each_other_in_a_circle() -> None:
    """Each folder below a room counts as one; a file beside such folders counts by itself."""
    names = {module_of(path): path for path in modules()}
    graph: dict[str, set[str]] = {}
    for path in modules():
        needed = {sub_room_of(names[one]) for one in own_imports(path, names) if one in names}
        graph.setdefault(sub_room_of(path), set()).update(needed - {sub_room_of(path)})
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as exc:
        pytest.fail(" imports ".join(reversed(exc.args[1])))


def sub_room_of(path: Path) -> str:
    """The folder of a file, or the file itself where it lies beside folders."""
    has_folders = any(one.is_dir() and one.name != "__pycache__" for one in path.parent.iterdir())
    return name_of(path) if has_folders else name_of(path.parent)


def test_the_rules_of_a_shards_state_know_no_files_of_batches() -> None:
    imports = {one for path in (PACKAGE / "shard/state").glob("*.py") for one in imported(path)}
    assert [one for one in imports if one.startswith(f"{OURS}.shard.batch")] == []
