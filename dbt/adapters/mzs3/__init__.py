"""dbt-mzs3: a dbt adapter for Spark that moves data to and from S3, exactly."""

from dbt.adapters.base.plugin import AdapterPlugin

from dbt.adapters.mzs3.connections import Mzs3ConnectionManager
from dbt.adapters.mzs3.credentials import Mzs3Credentials
from dbt.adapters.mzs3.impl import Mzs3Adapter
from dbt.include import mzs3

Plugin = AdapterPlugin(
    adapter=Mzs3Adapter,
    credentials=Mzs3Credentials,
    include_path=mzs3.PACKAGE_PATH,
    dependencies=["spark"],
)

__all__ = ["Mzs3Adapter", "Mzs3ConnectionManager", "Mzs3Credentials", "Plugin"]
