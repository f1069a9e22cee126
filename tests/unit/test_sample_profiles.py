import sys
from pathlib import Path
from types import ModuleType

import click
import pytest
import yaml
from dbt.task.init import InitTask

from dbt.adapters.mzs3.credentials import Mzs3ConnectionMethod, Mzs3Credentials
from dbt.include import mzs3

INCLUDE = Path(mzs3.PACKAGE_PATH)


def read(name):
    return yaml.safe_load((INCLUDE / name).read_text())


def test_the_sample_profile_is_one_that_works():
    (output,) = read("sample_profiles.yml")["default"]["outputs"].values()
    output = {key: value for key, value in output.items() if key not in ("type", "threads")}

    Mzs3Credentials.validate(output)
    made = Mzs3Credentials.from_dict(output)

    assert sorted(made.connections) == ["default", "lake", "store"]


ANSWERS = {
    "host": "spark.acme.com",
    "user": "ada",
    "cluster": "0123-456789-acme",
    "endpoint": "0123456789abcdef",
    "driver": "/opt/spark/lib/libspark.so",
    "token": "dapi-of-a-test",
    "schema": "analytics",
}
OF_ALL = ["method", "schema", "threads", "type"]
ASKED = {
    "session": [],
    "connect": ["host"],
    "thrift": ["host", "port", "user"],
    "http": ["cluster", "host", "port", "token"],
    "odbc": ["driver", "endpoint", "host", "port", "token"],
}


def test_dbt_init_offers_every_method():
    assert [*ASKED] == list(Mzs3ConnectionMethod)
    offered = read("profile_template.yml")["prompts"]["_choose_connection_method"].values()
    assert [choice["_fixed_method"] for choice in offered] == [*ASKED]


@pytest.mark.parametrize("method", ASKED)
def test_dbt_init_asks_for_what_the_method_needs_and_makes_a_profile_that_works(
    method, monkeypatch
):
    choices = [[*ASKED].index(method) + 1, 1]  # of odbc also an endpoint

    def answer(text, *, default=None, **_):
        if "enter a number" in text:
            return choices.pop(0)
        name = text.split()[0]
        url = method == "connect" and name == "host"
        return "sc://spark.acme.com" if url else ANSWERS.get(name, default)

    monkeypatch.setattr(click, "prompt", answer)
    monkeypatch.setitem(sys.modules, "pyodbc", ModuleType("pyodbc"))
    template = read("profile_template.yml")
    output = InitTask.generate_target_from_input(
        InitTask.__new__(InitTask),
        template["prompts"],
        dict(template["fixed"]),
    )

    assert sorted(output) == sorted([*ASKED[method], *OF_ALL])
    del output["type"], output["threads"]
    Mzs3Credentials.validate(output)
    assert Mzs3Credentials.from_dict(output).method == method
