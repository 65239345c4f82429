"""The jars that are fetched are those that Spark itself resolves for its connector."""

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest

from spark_metrics.job.connector_jars import JARS, SCALA, SPARK
from spark_metrics.job.java import find_java
from tests.support.patience import patience_s

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(400)]

CONNECTOR: Final = f"org.apache.spark:spark-sql-kafka-0-10_{SCALA}:{SPARK}"
BROUGHT_BY_PYSPARK: Final = (
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "org.slf4j:slf4j-api",
    "com.google.code.findbugs:jsr305",
    "org.lz4:lz4-java",
    "at.yawk.lz4:lz4-java",
    "org.xerial.snappy:snappy-java",
)
SCRIPT: Final = "from pyspark import SparkContext; SparkContext('local[1]').stop()"


def test_spark_resolves_the_same_jars(tmp_path: Path) -> None:
    options = {
        "spark.jars.packages": CONNECTOR,
        "spark.jars.excludes": ",".join(BROUGHT_BY_PYSPARK),
        "spark.jars.ivy": str(tmp_path),
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
    }
    flags = " ".join(f"--conf {name}={value}" for name, value in options.items())
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={
            **os.environ,
            "JAVA_HOME": str(find_java().home),
            "PYSPARK_SUBMIT_ARGS": f"{flags} pyspark-shell",
        },
        capture_output=True,
        text=True,
        timeout=patience_s(120),
        check=False,
    )
    if "unresolved dependency" in done.stderr.lower():
        pytest.skip("Maven Central cannot be reached")
    assert done.returncode == 0, done.stderr
    resolved = {jar.name: jar.read_bytes() for jar in (tmp_path / "jars").glob("*.jar")}
    found = {
        name: (len(content), sha256(content).hexdigest()) for name, content in resolved.items()
    }
    assert found == {jar.name: (jar.size, jar.sha256) for jar in JARS}
