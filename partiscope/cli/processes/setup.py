"""``partiscope setup``: what Spark needs beside Python, fetched and made once."""

from partiscope.cli.shared.exits import CommandError
from spark_metrics.job.connector_jars import say_on_stderr
from spark_metrics.job.java import JavaMissingError
from spark_metrics.job.set_up import set_up
from spark_metrics.window.errors import MetricsError


def setup() -> None:
    """Fetch Spark's Kafka connector and archive Spark's classes, once; check Java.

    `up` fetches the connector by itself. This is for images, and for machines without network:
    copy the folder that it names.
    """
    try:
        set_up(say_on_stderr)
    except (JavaMissingError, MetricsError) as error:
        raise CommandError(str(error)) from error
