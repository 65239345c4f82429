"""``partiscope setup``: what Spark needs beside Python, fetched and made once."""

from partiscope.cli.shared.exits import CommandError
from partiscope.cli.shared.options import Json, write_json
from spark_metrics.job.connector_jars import say_on_stderr
from spark_metrics.job.java import JavaMissingError
from spark_metrics.job.set_up import set_up
from spark_metrics.window.errors import MetricsError


def setup(as_json: Json = False) -> None:
    """Fetch Spark's Kafka connector and archive Spark's classes, once; check Java.

    `up` fetches the connector by itself. This is for images, and for machines without network:
    copy the folder that it names.
    """
    try:
        made = set_up(say_on_stderr)
    except (JavaMissingError, MetricsError) as error:
        raise CommandError(str(error)) from error
    if as_json:
        write_json(
            {
                "java": {"home": str(made.java.home), "version": made.java.version},
                "jars": [str(jar) for jar in made.jars],
                "class_archive": made.class_archive and str(made.class_archive),
            }
        )
