"""Fetches and makes once what the job needs beside Python: Spark's connector, its class archive.

``partiscope setup``, or python -m spark_metrics.job.set_up
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from spark_metrics.job.class_archive import make_archive
from spark_metrics.job.connector_jars import fetch_jars, say_on_stderr
from spark_metrics.job.java import Java, JavaMissingError, find_java
from spark_metrics.job.spark_session import archive_file
from spark_metrics.window.errors import JarsError


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUp:
    """Where what the job needs lies; the class archive is None where Java cannot make one."""

    java: Java
    jars: list[Path]
    class_archive: Path | None


def set_up(say: Callable[[str], None]) -> SetUp:
    """Fetch and make what is missing; ``say`` gets lines of progress.

    Raises:
        JavaMissingError: no Java that Spark can run on.
        JarsError: the connector cannot be had or kept.
    """
    java = find_java()
    say(f"Java {java.version} at {java.home}")
    jars = fetch_jars(say)
    say(f"Spark's Kafka connector: {len(jars)} jars in {jars[0].parent}")
    if not archive_file().exists():
        say("Spark's classes: making an archive of them, once (half a minute, or some)")
    archive = make_archive()
    say(str(archive or "no archive of classes: Spark will start a little later"))
    return SetUp(java=java, jars=list(jars), class_archive=archive)


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
