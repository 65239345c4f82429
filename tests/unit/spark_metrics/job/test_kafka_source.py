"""When a batch begins: at once, or when a round of a large cluster is there."""

from dataclasses import replace

from spark_metrics.job.kafka_source import SourceSettings, whole_rounds

SETTINGS = SourceSettings(bootstrap="127.0.0.1:9092")


def test_a_cluster_that_is_sampled_each_second_never_waits() -> None:
    assert whole_rounds(SETTINGS) == {}
    assert whole_rounds(replace(SETTINGS, interval_ms=1_000, rows=50_000)) == {}


def test_a_large_cluster_waits_for_most_of_a_round_but_not_for_ever() -> None:
    large = replace(SETTINGS, interval_ms=10_000, rows=1_300_000)
    assert whole_rounds(large) == {"minOffsetsPerTrigger": "2340", "maxTriggerDelay": "12000ms"}


def test_what_is_waited_for_fits_into_a_batch() -> None:
    large = replace(SETTINGS, interval_ms=60_000, rows=9_000_000)
    assert whole_rounds(large)["minOffsetsPerTrigger"] == str(large.records_per_batch_max)
    small = replace(SETTINGS, interval_ms=5_000, rows=30)
    assert whole_rounds(small)["minOffsetsPerTrigger"] == "1"
