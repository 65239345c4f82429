"""Fetches and makes once what the job needs beside Python: Spark's connector, its class archive.

python -m spark_metrics.job.set_up
"""

import subprocess
import sys

from spark_metrics.job.class_archive import make_archive
from spark_metrics.job.connector_jars import fetch_jars, jars_folder
from spark_metrics.job.java import JavaMissingError
from spark_metrics.window.errors import JarsError


def main() -> int:
    """Fetch what is missing; the exit status."""
    try:
        jars = fetch_jars()
    except (JarsError, JavaMissingError, OSError, subprocess.TimeoutExpired) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    kept = make_archive() or "no archive of classes: Spark will start a little later"
    sys.stderr.write(f"Spark's Kafka connector: {len(jars)} jars in {jars_folder()}\n{kept}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
