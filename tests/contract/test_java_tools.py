"""Kafka's own tools do a day's work on our brokers in the same words as on Kafka."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.cluster import LocalCluster
from tests.support.java_script import Step, java_transcript
from tests.support.kafka_oracle import KafkaCluster
from tests.support.phrases import kafka_says

pytestmark = [pytest.mark.kafka_oracle, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def kafkas(kafka_cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> list[Step]:
    """The transcript on real Kafka."""
    folder = tmp_path_factory.mktemp("on-kafka")
    return list(java_transcript(kafka_cluster.bootstrap, folder))


@pytest.fixture(scope="module")
def ours(
    our_cluster: LocalCluster, kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[Step]:
    """The transcript on our own brokers."""
    assert kafka_libs.exists()
    folder = tmp_path_factory.mktemp("on-ours")
    return list(java_transcript(our_cluster.bootstrap, folder))


SINCE_4_3 = kafka_says(" or some brokers have all their log directories cordoned")
"""What ours says as well, as Kafka does that can cordon."""


def test_the_tools_cannot_tell_ours_from_kafka(kafkas: list[Step], ours: list[Step]) -> None:
    ours = [
        replace(step, lines=tuple(line.replace(SINCE_4_3, "") for line in step.lines))
        for step in ours
    ]
    assert [step.name for step in ours] == [step.name for step in kafkas]
    differing = [
        f"{theirs.name}\n  Kafka: {theirs.status} {theirs.lines}\n  ours:  {our.status} {our.lines}"
        for theirs, our in zip(kafkas, ours, strict=True)
        if theirs != our
    ]
    assert not differing, "\n".join(differing)


def test_the_transcript_is_of_work_that_was_done(ours: list[Step]) -> None:
    by_name = {step.name: step for step in ours}
    assert by_name["create a topic"].lines == ("Created topic ledger.",)
    assert len(by_name["consume them in a group"].lines) == 61  # and the tool's closing line
    assert by_name["describe the moved partition"].lines[0].count("103,101") == 1
    assert by_name["list topics when it is gone"].lines == ()
