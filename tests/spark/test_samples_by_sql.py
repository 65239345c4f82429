"""Samples are decoded by Spark SQL alone, without any code of ours, into what was sampled."""

import pytest
from pyspark.sql import SparkSession

from broker.metrics.columns import BODY_DDL
from broker.metrics_schema import Row, decode_record, encode_round
from tests.spark.story import T0_MS, commit, envelope, replica

pytestmark = [
    pytest.mark.spark,
    pytest.mark.thorough,
    pytest.mark.timeout(240),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

BODIES = """
WITH lines AS (SELECT split(CAST(value AS STRING), '\\\\n') AS line FROM {samples}),
records AS (
  SELECT get_json_object(line[0], '$.cluster') AS cluster,
    CAST(get_json_object(line[0], '$.round_ms') AS BIGINT) AS round_ms,
    from_json(line[1], '{{ddl}}') AS body
  FROM lines)
"""
REPLICAS = """
SELECT cluster, get(c.topics, at) AS topic, partition, get(c.lists, isr) AS isr, high_watermark,
  log_points, round_ms + read_ms AS read_ms
FROM (SELECT cluster, round_ms, body.replicas_columns AS c FROM records)
LATERAL VIEW inline(arrays_zip(c.topic, c.partition, c.isr, c.high_watermark, c.log_points,
  c.read_ms)) AS at, partition, isr, high_watermark, log_points, read_ms
"""
COMMITS = """
SELECT get(c.groups, at) AS group_id, partition, committed_offset
FROM (SELECT body.commits_columns AS c FROM records)
LATERAL VIEW inline(arrays_zip(c.group_id, c.partition, c.committed_offset))
  AS at, partition, committed_offset
"""


def test_sql_reads_what_was_sampled(spark: SparkSession) -> None:
    rows: list[Row] = [
        replica(10, 100, topic="orders", isr=(101, 102), log_points=(T0_MS, 7)),
        replica(20, 5, topic="clicks"),
        commit(30, 40, group_id="billing"),
    ]
    (record,) = encode_round(envelope(101, 50), rows)
    samples = spark.createDataFrame([(bytearray(record),)], "value BINARY")
    bodies = BODIES.replace("{{ddl}}", BODY_DDL)
    known = decode_record(record)
    found = spark.sql(bodies + REPLICAS, samples=samples).collect()
    assert sorted(map(tuple, found)) == sorted(
        (
            known.envelope.cluster,
            each.topic,
            each.partition,
            list(each.isr),
            each.high_watermark,
            each.log_points and list(each.log_points),
            each.read_ms,
        )
        for each in known.replicas
    )
    found = spark.sql(bodies + COMMITS, samples=samples).collect()
    assert [tuple(row) for row in found] == [
        (each.group_id, each.partition, each.committed_offset) for each in known.commits
    ]
    assert {each.topic for each in known.replicas} == {"orders", "clicks"}
