"""Waits for the metrics topic, without Spark: a job that starts first must not die of it."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError

from spark_metrics.job.kafka_source import SourceSettings

POLL_S: Final = 0.25
SAY_EVERY_S: Final = 10.0
REQUEST_TIMEOUT_MS: Final = 5_000


def wait_for_topic(
    source: SourceSettings,
    *,
    is_stopped: Callable[[], bool],
    say: Callable[[str], None],
) -> bool:
    """Return True when the topic has a leader for each partition, False when stopped before.

    ``say`` is told at once, and then every ``SAY_EVERY_S``, what is still missing.
    """
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    return asyncio.run(_wait(source, is_stopped, say))


async def _wait(
    source: SourceSettings, is_stopped: Callable[[], bool], say: Callable[[str], None]
) -> bool:
    silent_s = SAY_EVERY_S
    while not is_stopped():
        missing = await _missing(source)
        if missing is None:
            return True
        if silent_s >= SAY_EVERY_S:
            say(missing)
            silent_s = 0.0
        await asyncio.sleep(POLL_S)
        silent_s += POLL_S
    return False


async def _missing(source: SourceSettings) -> str | None:
    """Say in a sentence what is not there yet; None when all is."""
    bootstrap, topic = source.bootstrap, source.topic
    client = AIOKafkaClient(
        bootstrap_servers=bootstrap,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        **source.client.of_aiokafka(),
    )
    try:
        await client.bootstrap()
        metadata = await client.fetch_all_metadata()
        partitions = metadata.partitions_for_topic(topic)
    except (KafkaError, OSError, TimeoutError) as error:
        return f"no broker answers at {bootstrap} yet ({error}); waiting"
    finally:
        await client.close()
    if not partitions:
        return f"topic {topic} does not exist yet on {bootstrap}; waiting for the first samples"
    return None
