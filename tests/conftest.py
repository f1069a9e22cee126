"""What all tests share: no AWS credentials of this machine, and boto3's files are read once."""

import functools
import os
from pathlib import Path

from botocore.loaders import JSONFileLoader
from hypothesis import settings
from support.examples import examples

pytest_plugins = ["dbt.tests.fixtures.project", "support.golden.server"]

# Processes that tests start import what tests share, too, and so do their workers.
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")])
)

for name in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[name]
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
os.environ["AWS_CONFIG_FILE"] = os.devnull
os.environ["AWS_SHARED_CREDENTIALS_FILE"] = os.devnull

settings.register_profile("mzs3", examples(100), deadline=None)
settings.load_profile("mzs3")

# Each mock of AWS drops boto3's session, and each new one reads the same models: 0.2 s.
_load = functools.cache(functools.partial(JSONFileLoader.load_file, JSONFileLoader()))
JSONFileLoader.load_file = lambda _, path: _load(path)  # type: ignore[method-assign]
