"""Fetches and makes once what the job needs beside Python: Spark's connector, its class archive.

``partiscope setup``, or python -m spark_metrics.job.set_up
"""

from collections.abc import Callable

from spark_metrics.job.class_archive import make_archive
from spark_metrics.job.connector_jars import fetch_jars, say_on_stderr
from spark_metrics.job.java import JavaMissingError, find_java
from spark_metrics.window.errors import JarsError


def set_up(say: Callable[[str], None]) -> None:
    """Fetch and make what is missing; ``say`` gets lines of progress.

    Raises:
        JavaMissingError: no Java that Spark can run on.
        JarsError: the connector cannot be had or kept.
    """
    java = find_java()
    say(f"Java {java.version} at {java.home}")
    jars = fetch_jars(say)
    say(f"Spark's Kafka connector: {len(jars)} jars in {jars[0].parent}")
    say(str(make_archive() or "no archive of classes: Spark will start a little later"))


def main() -> int:
    """Set up; the exit status."""
    try:
        set_up(say_on_stderr)
    except (JarsError, JavaMissingError) as error:
        say_on_stderr(str(error))
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
