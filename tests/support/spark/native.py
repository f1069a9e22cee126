"""Sessions with Comet, for `make test-native`, which sets MZS3_NATIVE."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

IS_NATIVE = os.environ.get("MZS3_NATIVE") == "1"
# On the class path of the JVM, as Spark does not find all classes in a package of a session.
COMET_JAR = Path(sys.prefix) / "comet.jar"

not_native = pytest.mark.skipif(IS_NATIVE, reason="is of Spark's rows")
native = pytest.mark.skipif(not IS_NATIVE, reason="needs MZS3_NATIVE=1")


def native_parameters() -> dict[str, str]:
    """Spark's parameters for Comet; none without MZS3_NATIVE."""
    if not IS_NATIVE:
        return {}
    return {
        "spark.driver.extraClassPath": str(COMET_JAR),
        "spark.executor.extraClassPath": str(COMET_JAR),
        "spark.plugins": "org.apache.spark.CometPlugin",
        "spark.shuffle.manager": (
            "org.apache.spark.sql.comet.execution.shuffle.CometShuffleManager"
        ),
        "spark.comet.exec.pyarrowUDF.enabled": "true",
        "spark.comet.scan.unsignedSmallIntSafetyCheck": "false",
        "spark.comet.exec.localTableScan.enabled": "true",
        "spark.comet.exec.range.enabled": "true",
        "spark.memory.offHeap.enabled": "true",
        "spark.memory.offHeap.size": "2g",
    }
