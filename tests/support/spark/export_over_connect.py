"""One export over Spark Connect in a process of its own, to be killed in the middle.

It writes its row among the running exports again and again. Arguments: the server's URL, the S3
endpoint, the location, and the schema, in which the model is `model.test.export`.
"""

from __future__ import annotations

import sys

from dbt.adapters.mzs3.export import running_view
from dbt.adapters.mzs3.export.job import copy_to_s3
from dbt.adapters.mzs3.export.monitor import RunContext
from dbt.adapters.mzs3.spark.engine import open_session
from support.s3.faulty import connection_to

WRITE_INTERVAL_S, DEAD_AFTER_S = 0.1, 1.0


def main(url: str, endpoint: str, location: str, schema: str) -> None:
    running_view.WRITE_INTERVAL_S, running_view.DEAD_AFTER_S = WRITE_INTERVAL_S, DEAD_AFTER_S
    copy_to_s3(
        open_session(url, {}, 0),
        "select id from range(1000)",
        node="model.test.export",
        options={"location": location, "parts": 2},
        connections={"default": connection_to(endpoint)},
        as_of=1,
        context=RunContext(schema, "export", "i-1"),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
