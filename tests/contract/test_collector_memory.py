"""Half an hour's worth of turns: the collector's memory stays as it was."""

from pathlib import Path

import pytest
from confluent_kafka.cimpl import NewTopic

from control.kafka.connection.settings import KafkaSettings
from tests.support.cluster import LocalCluster
from tests.support.collecting import becomes, collecting
from tests.support.kafka_oracle import ready_admin
from tests.support.patience import WAIT_S

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

TURNS = 1_800
WARM_TURNS = 300
GROWTH_BYTES_MAX = 8 << 20


def _resident_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


async def test_memory_is_flat(tmp_path: Path) -> None:
    overrides = {"partiscope.metrics.enable": "false"}
    with LocalCluster(tmp_path, brokers=1, overrides=overrides) as cluster:
        admin = ready_admin(**{"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic("many", 400, 1)])["many"].result(WAIT_S)
        settings = KafkaSettings(bootstrap=cluster.bootstrap)
        async with collecting(settings, interval_ms=100) as (collector, _):

            async def after(rounds: int) -> int:
                wanted = collector.rounds + rounds
                while collector.rounds < wanted:
                    goal = min(collector.rounds + 100, wanted)
                    await becomes(lambda goal=goal: collector.rounds >= goal, True)  # type: ignore[misc]
                return _resident_bytes()

            warm = await after(WARM_TURNS)
            end = await after(TURNS)
            assert end - warm < GROWTH_BYTES_MAX, f"{warm >> 20} MiB became {end >> 20} MiB"
