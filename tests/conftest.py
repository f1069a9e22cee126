"""What all tests share: no test sees this machine's AWS credentials."""

import os

pytest_plugins = ["dbt.tests.fixtures.project", "postgres_server"]

for name in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[name]
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
os.environ["AWS_CONFIG_FILE"] = os.devnull
os.environ["AWS_SHARED_CREDENTIALS_FILE"] = os.devnull
