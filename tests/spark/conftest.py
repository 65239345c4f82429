"""One Spark session for all tests of this folder."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark_metrics.feed import FileFeed
from spark_metrics.run import end_jvm
from spark_metrics.session import SessionSettings, build_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = build_session(SessionSettings())
    yield session
    session.stop()
    end_jvm()


@pytest.fixture(scope="session")
def feed(spark: SparkSession) -> Iterator[FileFeed]:
    """The feed with its plans, made once and used by every test, as by every batch."""
    made = FileFeed(spark)
    yield made
    made.remove()
