"""One Spark session for all tests of this folder."""

import signal
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark_metrics.job.run import end_jvm
from spark_metrics.job.spark_session import SessionSettings, build_session


@pytest.fixture(scope="session")
def _jvm() -> Iterator[None]:
    """The JVM ends with the process: to end it silences all logging, for later tests too."""
    yield
    end_jvm()


@pytest.fixture(scope="package")
def spark(_jvm: None) -> Iterator[SparkSession]:
    """pyspark takes Ctrl-C for itself; the tests of other folders get it back."""
    interrupted = signal.getsignal(signal.SIGINT)
    session = build_session(SessionSettings())
    yield session
    session.stop()
    signal.signal(signal.SIGINT, interrupted)
