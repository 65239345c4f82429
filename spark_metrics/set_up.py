"""Fetches and makes once what the job needs beside Python: Spark's connector, its class archive.

python -m spark_metrics.set_up
"""

import subprocess
import sys

from spark_metrics.archive import make_archive
from spark_metrics.errors import JarsError
from spark_metrics.jars import fetch_jars, jars_folder
from spark_metrics.java import JavaMissingError


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
