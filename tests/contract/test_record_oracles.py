"""Random searches and round trips of records on real Kafka, compared with what was written."""

from random import Random
from typing import Final

import pytest

from tests.contract.operations_rig import unique
from tests.oracle.messages.kafka_topics import kafka_topic
from tests.oracle.messages.test_round_trips import ORDINARY, SOAK, round_trips
from tests.support.kafka_oracle import KafkaCluster

SEARCHES: Final = 5
"""Of a topic."""
TOPICS: Final = 4
"""In one test."""
ORDINARY_TOPICS: Final = 12
SOAK_TOPICS: Final = 400


async def check(bootstrap: str, seeds: range) -> None:
    for seed in seeds:
        dice = Random(seed)
        with kafka_topic(bootstrap, unique("searched"), dice) as topic:
            for _ in range(SEARCHES):
                try:
                    await topic.check(dice)
                except BaseException as error:
                    error.add_note(f"seed {seed}")
                    raise


@pytest.mark.kafka_oracle
@pytest.mark.parametrize("first", range(0, ORDINARY_TOPICS, TOPICS))
async def test_a_search_of_kafka_finds_what_is_there(
    kafka_cluster: KafkaCluster, first: int
) -> None:
    await check(kafka_cluster.bootstrap, range(first, first + TOPICS))


@pytest.mark.kafka_oracle
async def test_records_of_kafka_are_sent_again_as_they_were(kafka_cluster: KafkaCluster) -> None:
    await round_trips(kafka_cluster.bootstrap, unique("trips"), ORDINARY, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(ORDINARY_TOPICS, SOAK_TOPICS + ORDINARY_TOPICS, TOPICS))
async def test_every_search_of_kafka_finds_what_is_there(
    kafka_cluster: KafkaCluster, first: int
) -> None:
    await check(kafka_cluster.bootstrap, range(first, first + TOPICS))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 2 + SOAK // ORDINARY))
async def test_every_record_of_kafka_is_sent_again_as_it_was(
    kafka_cluster: KafkaCluster, seed: int
) -> None:
    await round_trips(kafka_cluster.bootstrap, unique("trips"), ORDINARY, seed)
