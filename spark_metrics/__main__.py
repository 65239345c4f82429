"""Runs the metrics job; the only file that starts it.

    python -m spark_metrics --bootstrap HOST:PORT --store URL --checkpoint URL

Prints one line ``ready …`` on stdout when the first batch is committed; everything else goes to
stderr. Ends with 0 on SIGTERM and Ctrl-C, with 1 when it cannot go on.
"""

import argparse
import os
import re
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Final

from broker.metrics_schema import METRICS_TOPIC
from spark_metrics.job.client_properties import FLAG, ClientProperties
from spark_metrics.job.java import DRIVER_MEMORY, JavaMissingError
from spark_metrics.job.kafka_source import RECORDS_PER_BATCH_MAX, SourceSettings
from spark_metrics.job.port_secrets import SECRET
from spark_metrics.job.query import TRIGGER_MS, JobSettings
from spark_metrics.job.run import Run, RunSettings, leave, say
from spark_metrics.job.spark_session import SessionSettings
from spark_metrics.store.writer import RETENTION_MS
from spark_metrics.window.errors import MetricsError
from spark_metrics.window.store_url import require_no_password

MASTER: Final = re.compile(r"local(\[.+\])?|local-cluster\[.+\]|spark://.+:\d+|yarn|k8s://.+")
"""Masters as ``org.apache.spark.deploy.SparkSubmit`` takes them."""

OTHERS: Final = 0o077
"""Rights of other users of the machine: store and checkpoint are for the job's own user alone."""


def parse_arguments(arguments: list[str] | None = None) -> RunSettings:
    """The command line as settings; exits with 2 on wrong use."""
    parser = argparse.ArgumentParser(prog="spark_metrics", description="The metrics job.")
    add = parser.add_argument
    add("--bootstrap", required=True, help="brokers that hold the metrics topic")
    add("--store", required=True, help="folder or URL to write")
    add("--checkpoint", required=True, help="folder of the driver, or URL, of Spark's checkpoint")
    add(FLAG, type=Path, help="client properties file: TLS and SASL of the brokers")
    add("--topic", default=METRICS_TOPIC)
    add("--master", default="local[2]", help="Spark master")
    add("--trigger-ms", type=int, default=TRIGGER_MS)
    add("--driver-memory", default=DRIVER_MEMORY, help="heap of the JVM, such as 2g")
    add("--records-per-batch-max", type=int, default=RECORDS_PER_BATCH_MAX)
    add("--retention-ms", type=int, default=RETENTION_MS, help="how long history is kept")
    add("--conf", action="append", default=[], metavar="NAME=VALUE", help="Spark setting")
    add("--say-batches", action="store_true", help="tell where each batch's time went")
    chosen = parser.parse_args(arguments)
    if any("=" not in item for item in chosen.conf):
        parser.error("--conf takes NAME=VALUE")
    if secret := _secret_in(chosen):
        parser.error(secret)
    if not MASTER.fullmatch(chosen.master):
        parser.error(
            f"--master {chosen.master} is no Spark master: it takes local[2], local[*], "
            "spark://HOST:PORT, yarn or k8s://URL"
        )
    session = SessionSettings(
        master=chosen.master,
        driver_memory=chosen.driver_memory,
        further=dict(item.split("=", 1) for item in chosen.conf),
    )
    if session.has_executors:
        if find_spec("pandas") is None:
            parser.error(
                f"--master {chosen.master}: Spark needs pandas here and on the executors: install "
                "partiscope[executors], or in a checkout `uv sync --inexact --extra executors`"
            )
        if "://" not in (place := chosen.store):
            parser.error(
                f"--store {place} is a folder of this machine, and executors of "
                f"{chosen.master} cannot reach it: give a URL, such as s3://BUCKET/FOLDER, or "
                f"file://{_absolute(place)} where all machines share that folder"
            )
    return RunSettings(
        job=JobSettings(
            source=SourceSettings(
                bootstrap=chosen.bootstrap,
                topic=chosen.topic,
                client=_client(parser, chosen.command_config),
                records_per_batch_max=chosen.records_per_batch_max,
            ),
            store=_absolute(chosen.store),
            checkpoint=_absolute(chosen.checkpoint),
            trigger_ms=chosen.trigger_ms,
            has_executors=session.has_executors,
        ),
        session=session,
        retention_ms=chosen.retention_ms,
        says_batches=chosen.say_batches,
    )


def _client(parser: argparse.ArgumentParser, path: Path | None) -> ClientProperties:
    try:
        return ClientProperties() if path is None else ClientProperties.from_file(path)
    except MetricsError as error:
        parser.error(str(error))


def _secret_in(chosen: argparse.Namespace) -> str:
    """Why a flag is refused that everybody could read who lists processes; empty: none is."""
    if any(item.startswith(f"{SECRET}=") for item in chosen.conf):
        return (
            f"--conf {SECRET} would show the secret to everybody who lists processes: write it "
            "into spark-defaults.conf (mode 0600) of the folder that SPARK_CONF_DIR names"
        )
    for flag, url in (("--store", chosen.store), ("--checkpoint", chosen.checkpoint)):
        try:
            require_no_password(url)
        except ValueError as error:
            return f"{flag}: {error}"
    return ""


def _absolute(place: str) -> str:
    """A folder from the root on, a URL as it is."""
    return place if "://" in place else str(Path(place).absolute())


def main(arguments: list[str] | None = None) -> int:
    """Run until stopped; the exit status."""
    settings = parse_arguments(arguments)
    if not settings.session.has_executors:  # else others may have to read what the driver writes
        os.umask(OTHERS)
    run = Run(settings)
    # Spark and Java write files of known names where they are started: in a folder that others may
    # write to, somebody could lay a link there before.
    os.chdir(run.folder)

    def stop(signum: int, frame: FrameType | None) -> None:
        run.stop()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    try:
        run.run()
    except (MetricsError, JavaMissingError, OSError) as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
