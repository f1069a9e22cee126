"""What all benchmarks run on: one Spark session, and a folder that an S3 server serves."""

from __future__ import annotations

from pathlib import Path

from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.spark.session import get_or_create

BUCKET = "bench"


class Session:
    """A Spark of two cores with its tables in `folder`, and an empty bucket below it.

    `connection` is that of the server, once it serves `s3_folder`. `settings` are Spark's, by
    their names.
    """

    connection: AwsConnection

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.s3_folder = folder / "s3"
        (self.s3_folder / BUCKET).mkdir(parents=True)
        self.spark = get_or_create(
            {
                "spark.master": "local[2]",
                "spark.driver.memory": "8g",
                "spark.sql.warehouse.dir": str(folder / "warehouse"),
                "spark.ui.enabled": "false",
                "spark.ui.showConsoleProgress": "false",
                **settings,
            }
        )
