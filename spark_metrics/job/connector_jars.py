"""Spark's Kafka connector: fetched once, during set-up, into a cache; afterwards no network.

The cache is ``PARTISCOPE_CACHE``, else ``~/.cache/partiscope``; the jars lie in
``spark-jars/<spark>_<scala>/``, named by ``jars.txt``, which is written last. They are resolved
by Spark itself (Ivy), so the repositories and mirrors of Spark's own configuration apply.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from spark_metrics.job.java import find_java
from spark_metrics.window.errors import JarsError

FETCH_TIMEOUT_S: Final = 600
INDEX: Final = "jars.txt"
EXCLUDES: Final = (
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "org.slf4j:slf4j-api",
    "com.google.code.findbugs:jsr305",
    "org.lz4:lz4-java",
    "at.yawk.lz4:lz4-java",
    "org.xerial.snappy:snappy-java",
)
"""What pyspark brings along itself: 50 of 62 MB."""


def cache_folder() -> Path:
    """Where everything fetched is kept."""
    found = os.environ.get("PARTISCOPE_CACHE")
    return Path(found) if found else Path.home() / ".cache" / "partiscope"


def _spark_folder() -> Path:
    """Where pyspark lies. To load it would take whoever only looks for jars a quarter second."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise JarsError("there is no pyspark", why="it is not installed", what_next="`make setup`")
    return Path(found.origin).parent


def scala_version() -> str:
    """The Scala version of pyspark's own jars, e.g. ``2.13``."""
    jars = _spark_folder() / "jars"
    for jar in jars.glob("scala-library-*.jar"):
        if found := re.match(r"scala-library-(\d+\.\d+)", jar.name):
            return found.group(1)
    raise JarsError(
        "pyspark is incomplete", why=f"no Scala library in {jars}", what_next="Run `make setup`"
    )


def coordinate() -> str:
    """The connector of exactly the installed Spark."""
    return f"org.apache.spark:spark-sql-kafka-0-10_{scala_version()}:{version('pyspark')}"


def jars_folder() -> Path:
    """Where this Spark's connector is kept."""
    return cache_folder() / "spark-jars" / f"{version('pyspark')}_{scala_version()}"


def connector_jars() -> list[Path]:
    """The jars in the cache.

    Raises:
        JarsError: they were never fetched, or not all are there.
    """
    folder = jars_folder()
    index = folder / INDEX
    jars = [folder / name for name in index.read_text().split()] if index.exists() else []
    if not jars or not all(jar.is_file() for jar in jars):
        raise JarsError(
            "Spark's Kafka connector is not set up",
            why=f"its jars are not in {folder}",
            what_next="Run `make setup`, or `python -m spark_metrics.job.set_up`, with network",
        )
    return jars


def fetch_jars() -> list[Path]:
    """Resolve the connector into the cache, unless it is there already."""
    try:
        return connector_jars()
    except JarsError:
        folder = jars_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="partiscope-ivy-") as ivy:
        _resolve(Path(ivy))
        found = sorted((Path(ivy) / "jars").glob("*.jar"))
        for jar in found:
            shutil.copy2(jar, folder / jar.name)
    (folder / INDEX).write_text("".join(f"{jar.name}\n" for jar in found))
    return connector_jars()


def _resolve(ivy: Path) -> None:
    """Let Spark resolve the coordinate into ``ivy``, in a process of its own."""
    options = {
        "spark.jars.packages": coordinate(),
        "spark.jars.excludes": ",".join(EXCLUDES),
        "spark.jars.ivy": str(ivy),
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.authenticate": "true",
    }
    flags = " ".join(f"--conf {name}={value}" for name, value in options.items())
    script = "from pyspark import SparkContext; SparkContext('local[1]').stop()"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={
            **os.environ,
            "JAVA_HOME": str(find_java().home),
            "PYSPARK_SUBMIT_ARGS": f"{flags} pyspark-shell",
        },
        capture_output=True,
        text=True,
        timeout=FETCH_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        told = [line for line in done.stderr.splitlines() if "unresolved" in line.lower()]
        raise JarsError(
            f"{coordinate()} cannot be fetched",
            why=(told or done.stderr.strip().splitlines() or ["no answer"])[-1].strip(),
            what_next="Check the network to Maven Central, or set spark.jars.repositories "
            "in Spark's configuration, and run it again",
        )
