"""A Spark session that starts quickly, without network, and keeps small."""

import locale
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pyspark
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_metrics.job.connector_jars import connector_jars, jars_folder
from spark_metrics.job.java import DRIVER_MEMORY, find_java
from spark_metrics.job.port_secrets import authentication, guard_callbacks, require_authentication
from spark_metrics.window.errors import SparkStartError

JAVA_OPTIONS: Final = (
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    "-XX:MaxMetaspaceSize=256m",
    # The first compiler alone compiles a micro-batch's code soonest.
    "-XX:TieredStopAtLevel=1",
    "-Dlog4j2.disable.jmx=true",
    # Standard output is for our own `ready` line.
    "-XX:+DisplayVMOutputToStderr",
    "-Xlog:disable",
    "-Xlog:all=error:stderr",
)
"""One collector thread is enough for 2 cores."""
EXECUTOR_LOG: Final = "-Dorg.apache.logging.log4j.level=WARN"
"""Executors log warnings and errors, on standard output, by Log4j's own configuration. Where there
is none yet Spark loads another one, by which each batch has some thirty lines. A level that the
driver sets (``syncLogLevel``) does not help: an executor hears of it, and loads that configuration
afterwards. To Spark, Log4j's own with the level ERROR is as good as none."""
NO_JVM: Final = "JAVA_GATEWAY_EXITED"
"""PySpark's condition where the program it started ends before it says its port."""
_RAISED: Final = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*([^\s].*)")
"""What each of Python's tracebacks ends with. Of an error in a task there are two: the driver's,
which only says that there was one, and that of the task."""
TASK_ATTEMPTS_MAX: Final = 30
"""Attempts of a task in one JVM; with Spark's single one, a reader that gives up would end the
query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """The settings that may differ between installations."""

    master: str = "local[2]"
    driver_memory: str = DRIVER_MEMORY
    further: Mapping[str, str] = field(default_factory=dict)
    """Further settings by Spark's own names; they win."""

    @property
    def has_executors(self) -> bool:
        """Whether there are executors, in processes and perhaps on machines of their own."""
        return not self.master.startswith("local")


def archive_file() -> Path:
    """Where the archive of Spark's classes is kept that fits this Java and this installation."""
    java = find_java()
    installed = f"{java.home.resolve()} {java.version} {Path(pyspark.__file__).resolve()}"
    return jars_folder() / f"classes-{sha256(installed.encode()).hexdigest()[:12]}.jsa"


def build_session(settings: SessionSettings) -> SparkSession:
    """Start Spark, or return the running session.

    Raises:
        JavaMissingError: no Java that Spark can run on.
        JarsError: the connector was not fetched.
        SparkStartError: the JVM ended, the master cannot be reached, or anybody could use it.
    """
    os.environ["JAVA_HOME"] = str(find_java().home)
    if sys.getfilesystemencoding() == "utf-8" != locale.getencoding().lower():
        # Python reads paths as UTF-8 in the C locale too; Java then finds none beyond ASCII.
        os.environ["LC_ALL"] = "C.UTF-8"
    # Executors fold with a Python that has the same packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder
    for name, value in _options(settings).items():
        builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        if isinstance(error, PySparkException) and error.getCondition() == NO_JVM:
            raise SparkStartError(
                "Spark's JVM does not start",
                why=f"{os.environ['JAVA_HOME']}/bin/java has ended; what it wrote is above",
                what_next="If it was memory, lower --driver-memory (now "
                f"{settings.driver_memory}). Otherwise set JAVA_HOME to another Java 17 or 21.",
            ) from error
        raise SparkStartError(
            f"Spark does not start with --master {settings.master}",
            why=gist(error),
            what_next="What Java wrote is above. See that the master runs and that its port is "
            "reachable from here, or use local[2].",
        ) from error
    require_authentication(session, settings.master)
    guard_callbacks(session)
    return session


def is_submitted() -> bool:
    """Whether ``spark-submit`` has started this process, with a JVM that runs already."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def add_connector(session: SparkSession) -> None:
    """Give the connector to a JVM that has started without it: to the thread that calls, to those
    that it starts, and to executors."""
    if is_submitted():
        loader: Any = session._jsparkSession.sessionState().resourceLoader()
        for jar in connector_jars():
            loader.addJar(str(jar))


def _options(settings: SessionSettings) -> dict[str, str]:
    jars = [str(jar) for jar in connector_jars()]
    is_local = not settings.has_executors
    return {
        "spark.master": with_retries(settings.master),
        "spark.app.name": "partiscope metrics",
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.extraJavaOptions": " ".join(_java_options()),
        # In one JVM the class path does; elsewhere the executors fetch the jars.
        **({"spark.driver.extraClassPath": os.pathsep.join(jars)} if is_local else {}),
        **({} if is_local or is_submitted() else {"spark.jars": ",".join(jars)}),
        **({"spark.driver.host": "127.0.0.1"} if is_local else {}),
        **({"spark.driver.bindAddress": "127.0.0.1"} if is_local else {}),
        "spark.executor.extraJavaOptions": " ".join((*JAVA_OPTIONS, EXECUTOR_LOG)),
        **authentication(settings.master),
        # Hadoop gives local files modes of its own, whatever the umask.
        **({"spark.hadoop.fs.permissions.umask-mode": "077"} if is_local else {}),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.sql.streaming.numRecentProgressUpdates": "5",
        "spark.sql.streaming.minBatchesToRetain": "10",
        # To write and compile code costs a small batch more than to interpret its plan.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
        # Answers go to the driver as they are, not by way of the block manager and a socket.
        "spark.task.maxDirectResultSize": "100m",
        "spark.sql.ui.retainedExecutions": "5",
        "spark.ui.retainedJobs": "10",
        "spark.ui.retainedStages": "10",
        "spark.ui.retainedTasks": "100",
        "spark.cleaner.periodicGC.interval": "10min",
        **settings.further,
    }


def with_retries(master: str) -> str:
    """The master's name, with the attempts of a task in one JVM where it tells none. A reader whose
    broker hangs gives up; the next attempt makes a new one. Pure."""
    return re.sub(r"^local\[([^,\]]+)\]$", rf"local[\1,{TASK_ATTEMPTS_MAX}]", master)


def gist(error: Exception) -> str:
    """The reason without Spark's stack: where Python failed, the innermost of its errors. Pure."""
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    ours = _RAISED.findall(str(error))
    ours = ours or [line for line in lines if "Error: " in line or "Exception: " in line]
    return (ours or lines or [type(error).__name__])[-1 if ours else 0].strip(" :.")[:500]


def _java_options() -> tuple[str, ...]:
    archive = archive_file()
    mapped = (f'"-XX:SharedArchiveFile={archive}"',) if archive.exists() else ()
    return (*JAVA_OPTIONS, *mapped)
