"""No test gets what another one has left: all that a process keeps is known, and forgotten."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from support import process_state

import dbt.adapters.mzs3.errors as anchor
from dbt.adapters.mzs3.aws import client
from dbt.adapters.mzs3.project import source_runs

PACKAGE = Path(anchor.__file__).parent
EMPTY = ("dict", "list", "set", "defaultdict", "deque", "Counter")
CACHING = ("cache", "lru_cache")


def name_of(node: ast.AST) -> str:
    """What a call or a decorator is of: `cache` of `@functools.cache`, `lru_cache` of a call."""
    if isinstance(node, ast.Call):
        return name_of(node.func)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def kept(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Of a module, each name of what it keeps, with the kind of that."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                pass
            case ast.FunctionDef(name=name, decorator_list=decorators):
                if any(name_of(one) in CACHING for one in decorators):
                    yield "cache", name
                continue
            case _:
                continue
        match value:
            case ast.Dict(keys=[]) | ast.List(elts=[]):
                yield "kept", name
            case ast.Call() if name_of(value) in EMPTY and name.startswith("_"):
                yield "kept", name
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from (("setting", name) for name in node.names)


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


def test_all_that_is_kept_for_later_tasks_of_a_worker_is_known() -> None:
    users = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if process_state.NAME in path.read_text()
    }
    assert users == {"aws/client.py", "spark/job.py"}


@pytest.mark.parametrize("again", [False, True])
def test_nothing_is_left_of_the_test_before(again: bool) -> None:
    """The same twice: whichever is the second finds nothing of the first."""
    assert source_runs.once("run", "key", lambda: f"{again}") == f"{again}"
    assert client._idle == []
    assert process_state.NAME not in vars(boto3)
    client.LentClient(None, (), 1e12).give_back()  # type: ignore[arg-type]
    vars(boto3)[process_state.NAME] = "kept"
