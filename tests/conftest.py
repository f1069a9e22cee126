"""What all tests share: no AWS credentials of this machine, no limit on an example's time."""

import os

from hypothesis import settings

pytest_plugins = ["dbt.tests.fixtures.project", "postgres_server"]

for name in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[name]
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
os.environ["AWS_CONFIG_FILE"] = os.devnull
os.environ["AWS_SHARED_CREDENTIALS_FILE"] = os.devnull

settings.register_profile("mzs3", deadline=None)
settings.load_profile("mzs3")
