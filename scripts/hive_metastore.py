"""Hive's metastore as a server on the loopback interface, from the jars of pip's pyspark.

The argument is the folder that keeps what it knows. Hive's own main program listens on every
interface, so its server is put together here. It ends with this process.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway


def main(folder: Path) -> None:
    """Serve until this process ends; the address is printed first."""
    folder.mkdir(parents=True, exist_ok=True)
    # What Derby keeps lasts as long as this process: it need not wait for the disk.
    derby = f"-Dderby.stream.error.file={folder / 'derby.log'} -Dderby.system.durability=test"
    # It lives for a demo or a test, beside others: Java's second compiler, and threads to collect
    # garbage, would take more than they save.
    short = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    java = {"spark.driver.memory": "512m", "spark.driver.extraJavaOptions": f"{derby} {short}"}
    jvm = launch_gateway(SparkConf(loadDefaults=False).setAll([*java.items()])).jvm
    hive, thrift = jvm.org.apache.hadoop.hive, jvm.org.apache.thrift
    conf = hive.conf.HiveConf()
    for name, value in {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder / 'db'};create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": str(folder / "warehouse"),
    }.items():
        conf.set(name, value)
    handler = getattr(hive.metastore, "HiveMetaStore$HMSHandler")("metastore", conf, False)
    proxy = hive.metastore.RetryingHMSHandler.getProxy(conf, handler, True)
    socket = thrift.transport.TServerSocket(jvm.java.net.InetSocketAddress("127.0.0.1", 0))
    arguments = getattr(thrift.server, "TThreadPoolServer$Args")(socket)
    arguments.processor(hive.metastore.TSetIpAddressProcessor(proxy))
    print(f"serving thrift://127.0.0.1:{socket.getServerSocket().getLocalPort()}", flush=True)
    thrift.server.TThreadPoolServer(arguments).serve()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
