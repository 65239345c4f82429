"""The rig of replicas with the real controller's decisions; metadata reaches each node late."""

import random
from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from broker.controller.brokers import (
    Heartbeat,
    RegisterBroker,
    decide_fence,
    decide_heartbeat,
    decide_register,
)
from broker.controller.controller_channel import ControllerRequest
from broker.controller.decision import Decision
from broker.handlers.k56_alter_partition import execute_alter_partition
from broker.metadata.image import ImageDelta, MetadataImage
from broker.metadata.records import BrokerEndpoint
from broker.metadata.replay import replay_batch
from broker.replication.ports import AlterPartitionPort
from tests.support.virtual_time import LoopClock
from tests.unit.broker.controller.images import never
from tests.unit.broker.replication.rig import CLUSTER_ID, INFO, Rig

FIRST_OFFSET = 1_000
"""Broker epochs are offsets of the metadata log: these are above those of the rig's nodes."""


class ControlledRig(Rig):
    """Three nodes; the real decisions say who is registered, fenced and in sync. Their time is that
    of the loop."""

    clock = LoopClock()

    def __init__(self, directory: Path, dice: random.Random) -> None:
        self.late: dict[int, deque[tuple[MetadataImage, ImageDelta]]] = {}
        super().__init__(
            directory,
            replica_lag_time_max_ms="200",
            replica_fetch_wait_max_ms="20",
            replica_fetch_backoff_ms="20",
        )
        self.dice = dice
        self._starts = 0
        self._incarnations = {n: UUID(int=n) for n in self.nodes}

    def start_node(self, node_id: int) -> None:
        """It begins with the newest metadata."""
        self.late[node_id] = deque()
        super().start_node(node_id)

    def controller(self, node_id: int) -> AlterPartitionPort:
        """Its decisions are real."""
        return DecidingController(self, node_id)

    def publish(self, image: MetadataImage, changed: ImageDelta) -> None:
        """Each node hears of it when it is `deliver`ed."""
        self.image = image
        for node_id in self.nodes:
            self.late[node_id].append((image, changed))

    def deliver(self, node_id: int) -> bool:
        """A node replays the next batch; whether there was one."""
        if not self.late[node_id]:
            return False
        image, changed = self.late[node_id].popleft()
        replayed = SimpleNamespace(image=image, changed=changed)
        self.nodes[node_id].metadata.publish(replayed)  # type: ignore[arg-type]
        return True

    def decide(self, decision: Decision[Any]) -> Any:
        """Commit what was decided; the answer to whoever asked."""
        if decision.records:
            first = max(self.image.offset, FIRST_OFFSET)
            offset = first + len(decision.records)
            replayed = replay_batch(self.image, decision.records, offset=offset, epoch=1)
            self.publish(replayed.image, replayed.changed)
        return decision.response

    def register(self, node_id: int) -> None:
        """As its process does; also once more, when it has not heard the first answer."""
        command = RegisterBroker(
            broker_id=node_id,
            cluster_id=CLUSTER_ID,
            incarnation_id=self._incarnations[node_id],
            endpoints=(BrokerEndpoint(name="PLAINTEXT", host="rig", port=node_id),),
            rack=None,
        )
        self.decide(
            decide_register(command, self.image, has_valid_session=True, is_unclean_enabled=never)
        )

    def beat(self, node_id: int) -> None:
        """The heartbeat that unfences a broker whose metadata has caught up with it."""
        command = Heartbeat(
            broker_id=node_id,
            broker_epoch=self.image.brokers[node_id].epoch,
            metadata_offset=self.nodes[node_id].metadata.image.offset,
            wants_fence=False,
            wants_shutdown=False,
        )
        self.decide(decide_heartbeat(command, self.image, is_unclean_enabled=never))

    def fence(self, node_id: int) -> None:
        """Its session is over, whether it lives or not."""
        self.decide(decide_fence(node_id, self.image, is_unclean_enabled=never))

    async def kill(self, node_id: int) -> None:
        """kill -9: its files stay as they are."""
        await self.stop_node(node_id, clean=False)

    def restart(self, node_id: int) -> None:
        """Another process with the same files."""
        self._starts += 1
        self._incarnations[node_id] = UUID(int=100 * self._starts + node_id)
        self.register(node_id)
        self.start_node(node_id)


class DecidingController:
    """A node's way to the controller; answers get lost while the node is cut off from all."""

    def __init__(self, rig: ControlledRig, node_id: int) -> None:
        self._rig = rig
        self._node_id = node_id

    async def submit(self, api_key: int, api_version: int, message: Any, *, lane: str) -> Any:
        assert api_key == 56
        asked = ControllerRequest(
            api_key=api_key, api_version=api_version, message=message, context=INFO
        )
        answer = await execute_alter_partition(self, asked)  # type: ignore[arg-type]
        if self._rig.cut and self._rig.dice.random() < 0.3:
            raise ConnectionError("the answer is lost")
        return answer

    async def run(self, decide: Any) -> Any:
        """As the active controller runs a decision."""
        return self._rig.decide(decide(self._rig.image))
