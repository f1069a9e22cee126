"""dbt-mzs3: a dbt adapter for Spark that moves data to and from S3, exactly."""

from dbt.adapters.base.plugin import AdapterPlugin
from dbt_common.exceptions import DbtRuntimeError

from dbt.include import mzs3

try:
    from dbt.adapters.mzs3.connections import Mzs3ConnectionManager
    from dbt.adapters.mzs3.credentials import Mzs3Credentials
    from dbt.adapters.mzs3.impl import Mzs3Adapter
except ModuleNotFoundError as exc:
    if (exc.name or "").partition(".")[0] != "pyspark":
        raise
    raise DbtRuntimeError(
        "the adapter mzs3 needs pyspark, which an extra brings: pip install 'dbt-mzs3[session]' "
        "for Spark in dbt's process (method: session), or pip install 'dbt-mzs3[connect]' for a "
        "Spark Connect server (method: connect)"
    ) from None

Plugin = AdapterPlugin(
    adapter=Mzs3Adapter,
    credentials=Mzs3Credentials,
    include_path=mzs3.PACKAGE_PATH,
    dependencies=["spark"],
)

__all__ = ["Mzs3Adapter", "Mzs3ConnectionManager", "Mzs3Credentials", "Plugin"]
