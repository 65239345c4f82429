"""The metrics topic as a stream."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from broker.metrics_schema import METRICS_TOPIC
from spark_metrics.job.client_properties import ClientProperties
from spark_metrics.store.writer import wall_clock_ms

RECORDS_PER_BATCH_MAX: Final = 6_000
"""Two rounds of a million commits; of a small cluster, many minutes. A batch that took longer than
an interval must be followed by one that takes in all that came meanwhile, or samples pile up: at
the pace that sources keep (``JOB_ROWS_PER_S``) these are the records of 50 s."""
FETCH_WAIT_MS: Final = 10
"""How long a broker holds a fetch at the end of the log. Spark's reader asks for the log's bounds
after each fetch, on the connection on which its client has already sent the next one: with Kafka's
500 ms every batch would wait for it."""
ANSWER_WAIT_MS: Final = 600
"""How long a broker may take to answer. One that hangs (it is stopped, its disk is, or its network)
has lost its partitions to others after 3 s, but clients only look for them once their request has
failed: with Kafka's 30 s, and 60 s of Spark's asking for the log's bounds, the figures of all
brokers would stand still for a minute. A new client may begin at the broker that hangs: within one
question (``ASKING_MS``) it can still ask another one."""
METADATA_AGE_MS: Final = 500
"""Readers hear so soon that a partition has another leader, without a request that fails first."""
ASKING_MS: Final = 1_500
"""All of one question. Kafka's admin client waits so long for a broker that has left the cluster;
then Spark asks again with a new client, which knows those that are there."""
CONNECT_WAIT_MS: Final = 1_000
RECONNECT_MS: Final = 1_000
"""How long a client leaves a broker alone whose connection has failed. While it connects to one,
Kafka's client asks no other for metadata: with Kafka's 50 ms it came back to the broker that hangs
again and again, and heard of the new leader up to 7 s after the others knew."""
QUESTIONS_MAX: Final = 30
"""The log's bounds are asked for so often before the stream fails."""
QUESTIONS_PAUSE_MS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """Where the samples are, and how many to take at once."""

    bootstrap: str
    topic: str = METRICS_TOPIC
    client: ClientProperties = field(default_factory=ClientProperties)
    """TLS and SASL of the brokers."""
    records_per_batch_max: int = RECORDS_PER_BATCH_MAX
    """Bounds a batch after a pause."""
    look_back_ms: int = 120_000
    """A new checkpoint begins with samples that are at most so old."""
    read_until_ms: int | None = None
    """When the store took in records last: a new checkpoint begins before it, …"""
    starts: Mapping[int, int] | None = None
    """… or at these offsets of the topic's partitions."""


def beginnings(settings: SourceSettings, now_ms: int) -> dict[str, str]:
    """Options that say where a new checkpoint begins. Pure."""
    if settings.starts:
        return {"startingOffsets": offsets_json(settings.topic, settings.starts)}
    since_ms = min(now_ms, settings.read_until_ms or now_ms) - settings.look_back_ms
    return {
        "startingTimestamp": str(max(0, since_ms)),
        "startingOffsetsByTimestampStrategy": "latest",
    }


def read_between(
    session: SparkSession,
    settings: SourceSettings,
    begins: Mapping[int, int],
    ends: Mapping[int, int],
) -> DataFrame:
    """The records from some offsets to others (not in it), of all partitions of the topic."""
    bounds = {"startingOffsets": begins, "endingOffsets": ends}
    return (
        session.read.format("kafka")
        .options(**settings.client.of_spark())
        .option("kafka.bootstrap.servers", settings.bootstrap)
        .option("subscribe", settings.topic)
        .options(**{name: offsets_json(settings.topic, it) for name, it in bounds.items()})
        .option("failOnDataLoss", "false")
        .load()
    )


def offsets_json(topic: str, offsets: Mapping[int, int]) -> str:
    """Offsets of a topic's partitions, as the connector takes them."""
    return json.dumps({topic: {str(number): offset for number, offset in offsets.items()}})


def read_samples(session: SparkSession, settings: SourceSettings) -> DataFrame:
    """The stream of records, as the connector gives them (key, value, partition, offset, …).

    Records that retention took away before they were read do not stop the job; the sink counts
    them (``JobState.lost_records_total``).
    """
    return (
        session.readStream.format("kafka")
        .options(**settings.client.of_spark())
        .option("kafka.bootstrap.servers", settings.bootstrap)
        .option("subscribe", settings.topic)
        .options(**beginnings(settings, wall_clock_ms()))
        .option("failOnDataLoss", "false")
        .option("maxOffsetsPerTrigger", settings.records_per_batch_max)
        .option("groupIdPrefix", "partiscope-metrics")
        .option("kafka.fetch.max.wait.ms", FETCH_WAIT_MS)
        .option("kafka.request.timeout.ms", ANSWER_WAIT_MS)
        .option("kafka.default.api.timeout.ms", ASKING_MS)
        .option("kafka.metadata.max.age.ms", METADATA_AGE_MS)
        .option("fetchOffset.numRetries", QUESTIONS_MAX)
        .option("fetchOffset.retryIntervalMs", QUESTIONS_PAUSE_MS)
        .option("kafka.socket.connection.setup.timeout.ms", CONNECT_WAIT_MS)
        .option("kafka.reconnect.backoff.ms", RECONNECT_MS)
        .option("kafka.reconnect.backoff.max.ms", RECONNECT_MS)
        .load()
    )
