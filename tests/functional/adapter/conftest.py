"""`make test` runs eleven classes of dbt's acceptance suite, one a part. Others are slow.

Those of what dbt-mzs3 leaves to dbt-core and dbt-spark are long; over Connect they run too.
"""

import re
from pathlib import Path

import pytest

QUICK = {
    "TestBasicSeed",
    "TestConstraintsRuntimeDdlEnforcement",
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

LEFT_TO_OTHERS = {
    "test_commands",
    "test_data_types",
    "test_hooks",
    "test_relations",
    "test_unit_testing",
    "test_utils",
}
OWN_MACROS = {"TestListagg"}

_sources = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
if unknown := QUICK - set(re.findall(r"^class (\w+)", _sources, re.MULTILINE)):
    raise LookupError(f"no class is called {', '.join(sorted(unknown))}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        bases = getattr(getattr(item, "cls", None), "__mro__", ())
        inherited = any(base.__module__.startswith("dbt.tests.adapter") for base in bases)
        if inherited and item.cls.__name__ not in QUICK:
            is_left = item.path.stem in LEFT_TO_OTHERS and item.cls.__name__ not in OWN_MACROS
            item.add_marker(pytest.mark.long if is_left else pytest.mark.slow)
