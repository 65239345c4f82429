"""Fetches real Kafka, keeps its classes and builds the Go client, at set-up; says which tests are
skipped without.

python -m tests.support.peers
"""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from tests.support.go_program import GoUnavailableError, build_go_client
from tests.support.kafka_oracle import (
    KAFKA_TODAY,
    KAFKA_VERSION,
    OracleUnavailableError,
    kafka_libs,
    make_class_archive,
)
from tests.support.kafka_zookeeper import ZOOKEEPER_KAFKA_VERSION


def main() -> None:
    """Both at once: one waits for the network, the other for the compiler."""
    with ThreadPoolExecutor(2) as threads:
        kafka, client = threads.submit(_fetch_kafka), threads.submit(build_go_client)
    try:
        kafka.result()
    except OracleUnavailableError as error:
        print(f"setup: tests beside real Kafka will be skipped: {error}", file=sys.stderr)
    try:
        client.result()
    except GoUnavailableError as error:
        print(f"setup: the test with a Go client will be skipped: {error}", file=sys.stderr)


def _fetch_kafka() -> None:
    """One after the other: Maven's local repository is not made for two writers."""
    for version in (KAFKA_VERSION, KAFKA_TODAY, ZOOKEEPER_KAFKA_VERSION):
        kafka_libs(version)
    for version in (KAFKA_VERSION, KAFKA_TODAY):
        with suppress(AssertionError, subprocess.SubprocessError):
            make_class_archive(version)


if __name__ == "__main__":
    main()
