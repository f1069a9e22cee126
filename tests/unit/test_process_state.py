"""No test gets what another one has left: all that a process keeps is known, and forgotten."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import process_state

import dbt.adapters.mzs3.errors as anchor
from dbt.adapters.mzs3.project import source_runs
from dbt.adapters.mzs3.store import opened
from dbt.adapters.mzs3.worker import worker_state

PACKAGE = Path(anchor.__file__).parent
# What is empty at first, or another in each thread: made to be filled.
FILLED = {
    "dict",
    "list",
    "set",
    "defaultdict",
    "deque",
    "Counter",
    "OrderedDict",
    "count",
    "local",
}
FILLED |= {"ContextVar", "WeakKeyDictionary", "WeakValueDictionary", "WeakSet"}
CHANGING = {"add", "append", "appendleft", "extend", "insert", "setdefault", "update"}
CACHING = ("cache", "lru_cache")


def name_of(node: ast.AST) -> str:
    """What a call or a decorator is of: `cache` of `@functools.cache`, `lru_cache` of a call."""
    if isinstance(node, ast.Call):
        return name_of(node.func)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def kept(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Of a module and its classes, each name of what it keeps, with the kind of that.

    That is what begins empty, what a function of the module adds to, `global` names and caches.
    What other modules add to is not seen, nor what is kept by an object of a class.
    """
    changed = {name for node in ast.walk(tree) for name in changed_by(node)}
    yield from kept_in(tree.body, "", changed)
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from (("setting", name) for name in node.names)
        if isinstance(node, ast.ClassDef):
            yield from kept_in(node.body, f"{node.name}.", set())


def kept_in(body: list[ast.stmt], prefix: str, changed: set[str]) -> Iterator[tuple[str, str]]:
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.expr() as value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                if any(kind in ast.unparse(node.annotation) for kind in ("Mapping[", "Sequence[")):
                    continue  # which mypy lets nobody change
            case ast.FunctionDef(name=name, decorator_list=decorators):
                if any(name_of(one) in CACHING for one in decorators):
                    yield "cache", prefix + name
                continue
            case _:
                continue
        is_empty = isinstance(value, ast.Dict | ast.List) and ast.unparse(value) in ("{}", "[]")
        if (
            is_empty
            or name in changed
            or (isinstance(value, ast.Call) and name_of(value) in FILLED)
        ):
            yield "kept", prefix + name


def changed_by(node: ast.AST) -> Iterator[str]:
    """The names of what a statement in a function adds to, or a part of a statement."""
    match node:
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
            yield name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if attr in CHANGING:
            yield name


@pytest.mark.parametrize(
    "text",
    [
        "x = {}",
        "x: dict[str, int] = {}",
        "x = collections.defaultdict(list)",
        "x = threading.local()",
        "x = weakref.WeakValueDictionary()",
        "x = {1: 2}\ndef f(): x[2] = 3",
        "x = {1}\ndef f(): x.add(2)",
        "x = None\ndef f():\n  global x\n  x = 1",
        "@functools.cache\ndef x(): pass",
        "class C:\n  x = {}",
        "class C:\n  x: ClassVar[list[int]] = []",
        "class C:\n  @lru_cache(maxsize=1)\n  def x(self): pass",
    ],
)
def test_what_a_module_keeps_is_seen(text: str) -> None:
    assert [name.removeprefix("C.") for _, name in kept(ast.parse(text))] == ["x"]


@pytest.mark.parametrize(
    "text", ["x = {1: 2}", "x: Mapping[str, int] = {}", "def f():\n  x = {}\n  x[1] = 2", "x = 1"]
)
def test_what_nobody_changes_is_not_kept(text: str) -> None:
    assert list(kept(ast.parse(text))) == []


def test_all_that_modules_keep_is_known() -> None:
    found: dict[str, set[tuple[str, str]]] = {"kept": set(), "cache": set(), "setting": set()}
    for path in PACKAGE.rglob("*.py"):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for kind, name in kept(ast.parse(path.read_text())):
            found[kind].add((module, name))
    assert found == {
        "kept": process_state.KEPT,
        "cache": process_state.CACHES,
        "setting": process_state.SETTINGS,
    }


def test_nothing_is_kept_in_modules_of_others() -> None:
    """As `vars(boto3)["client"] = client` would do."""
    found = [
        f"{path.relative_to(PACKAGE)}: {ast.unparse(node)}"
        for path in PACKAGE.rglob("*.py")
        for tree in [ast.parse(path.read_text())]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "vars"
        for argument in node.args
        if ast.unparse(argument) in modules_of(tree)
    ]
    assert found == []


def modules_of(tree: ast.Module) -> set[str]:
    """The names under which a module imports modules as a whole."""
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }


@pytest.mark.parametrize("again", [False, True])
def test_nothing_is_left_of_the_test_before(again: bool) -> None:
    """The same twice: whichever is the second finds nothing of the first."""
    assert source_runs.run_once("run", "key", lambda: f"{again}") == f"{again}"
    assert opened._idle == []
    assert worker_state() == {}
    opened.PooledStore(None, (), 1e12).give_back()  # type: ignore[arg-type]
    worker_state()["client"] = "kept"
