"""Fetches real Kafka and builds the Go client, at set-up; says which tests are skipped without.

python -m tests.support.peers
"""

import sys
from concurrent.futures import ThreadPoolExecutor

from tests.support.go_program import GoUnavailableError, build_go_client
from tests.support.kafka_oracle import OracleUnavailableError, kafka_libs


def main() -> None:
    """Both at once: one waits for the network, the other for the compiler."""
    with ThreadPoolExecutor(2) as threads:
        oracle, client = threads.submit(kafka_libs), threads.submit(build_go_client)
    try:
        oracle.result()
    except OracleUnavailableError as error:
        print(f"setup: tests beside real Kafka will be skipped: {error}", file=sys.stderr)
    try:
        client.result()
    except GoUnavailableError as error:
        print(f"setup: the test with a Go client will be skipped: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
