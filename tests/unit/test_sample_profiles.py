from pathlib import Path

import pytest
import yaml

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


def test_dbt_init_asks_for_what_every_method_needs():
    template = read("profile_template.yml")
    prompts = template["prompts"]

    assert template["fixed"] == {"type": "mzs3"}
    assert {"schema", "threads"} <= prompts.keys()


@pytest.mark.parametrize(
    "choice", read("profile_template.yml")["prompts"]["_choose_connection_method"].values()
)
def test_dbt_init_offers_methods_that_exist(choice):
    assert choice["_fixed_method"] in list(Mzs3ConnectionMethod)
    assert choice["_fixed_method"] != "connect"
