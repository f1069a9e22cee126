"""`make test` runs a dozen classes of dbt's acceptance suite, one a part. Others are slow."""

import re
from pathlib import Path

import pytest

QUICK = {
    "TestBasicSeed",
    "TestConstraintsRuntimeDdlEnforcement",
    "TestDocsGenerate",
    "TestEphemeral",
    "TestGenericTests",
    "TestIncremental",
    "TestPrePostModelHooksInConfigKwargs",
    "TestPythonModel",
    "TestSimpleMaterializations",
    "TestStoreTestFailuresAsGeneric",
    "TestTypeNumeric",
    "TestUnitTestCaseInsensivity",
}


_sources = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
if unknown := QUICK - set(re.findall(r"^class (\w+)", _sources, re.MULTILINE)):
    raise LookupError(f"no class is called {', '.join(sorted(unknown))}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        bases = getattr(getattr(item, "cls", None), "__mro__", ())
        inherited = any(base.__module__.startswith("dbt.tests.adapter") for base in bases)
        if inherited and item.cls.__name__ not in QUICK:
            item.add_marker(pytest.mark.slow)
