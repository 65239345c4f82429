"""One node: its rooms started in order, kept up, stopped in order.

Start: data directory, ports, quorum, registration, replicas, unfenced, client listener's
readiness. Whatever an operator can mend is one of OPERATOR_ERRORS and ends the start.
"""

import asyncio
import logging
from collections.abc import Iterator
from functools import partial

from broker.background import (
    Rounds,
    Tasks,
    end_process,
    leave_to_caller,
    set_process_end,
)
from broker.clock import Clock, SystemClock
from broker.config.broker_config import BrokerConfig
from broker.config.errors import ConfigError
from broker.controller.errors import InconsistentClusterError
from broker.coordinator.producer_ids import ALLOCATE_PRODUCER_IDS, ALLOCATE_PRODUCER_IDS_VERSION
from broker.host_name import address_text
from broker.log.errors import LogError
from broker.metadata.image import ImageDelta, MetadataImage
from broker.metrics.pace import Pace
from broker.metrics.reporter import MetricsReporter
from broker.protocol import codec
from broker.raft.vote_file import VoteFileError
from broker.replication.leader.alter_partition_manager import (
    ALTER_PARTITION,
    ALTER_PARTITION_VERSION,
)
from broker.server.assembly import NodeParts, assemble, open_logs
from broker.server.listener import ListenError

OPERATOR_ERRORS = (
    ConfigError,
    LogError,
    ListenError,
    VoteFileError,
    InconsistentClusterError,
)
OWN_REQUESTS = (
    (ALTER_PARTITION, ALTER_PARTITION_VERSION),
    (ALLOCATE_PRODUCER_IDS, ALLOCATE_PRODUCER_IDS_VERSION),
)
"""What a node asks of the controller while clients wait; the first time must not take longer."""
MAINTAIN_MS = 1_000
GOODBYE_CHECK_S = 0.05
LEADERLESS_MS_MAX = 700
"""How long a stopping node waits for an election: after the others went there will be none."""

log = logging.getLogger(__name__)


class Node:
    """One process, a broker and mostly a controller as well; `start`, then `stop`."""

    def __init__(self, config: BrokerConfig, clock: Clock | None = None) -> None:
        self.config = config
        self._clock = clock or SystemClock()
        self._parts: NodeParts | None = None
        self._reporter: MetricsReporter | None = None
        self._maintenance = Rounds("maintenance of the logs", MAINTAIN_MS, self._maintain)
        self._starting = Tasks("start of the broker", end_process)
        self._waiting = Tasks("start and stop of the broker", leave_to_caller)
        self._has_started_replicas = False
        self.fault: Exception | None = None

    @property
    def address(self) -> str:
        """host:port for clients, of the first listener that is advertised."""
        first = self.config.listeners.advertised[0]
        return address_text(first.host, first.port)

    async def start(self, stopping: asyncio.Event) -> None:
        """Return when clients can produce and consume, or when `stopping` is set.

        :raises OPERATOR_ERRORS: something that the operator can mend.
        """
        set_process_end(lambda error: self._note_fault(error, stopping))
        for kind in OWN_REQUESTS:
            codec.prepare(*kind)
        logs = open_logs(self.config, self._clock)
        try:
            parts = self._parts = assemble(self.config, self._clock, logs)
        except BaseException:
            logs.shutdown(clean=False)
            raise
        parts.quorum.on_fault = lambda error: self._note_fault(error, stopping)
        logs.disk.on_failure = lambda error: self._note_fault(error, stopping)
        for listener in parts.listeners:
            await listener.bind()
        parts.metadata.subscribe(self._metadata_changed)
        if parts.controller_listener is not None:
            await parts.controller_listener.serve()
        parts.quorum.start()
        parts.lifecycle.start()
        await self._wait_unfenced(parts, stopping)
        if not stopping.is_set():
            self._start_reporter(parts)

    def _note_fault(self, error: Exception, stopping: asyncio.Event) -> None:
        """The node cannot go on; the process ends with this story, the other brokers take over."""
        self.fault = self.fault or error
        stopping.set()

    def _metadata_changed(
        self, old: MetadataImage, new: MetadataImage, changed: ImageDelta
    ) -> None:
        """Our own registration has been replayed: the image is that of now, replicas may act."""
        parts = self._parts
        assert parts is not None
        broker = new.brokers.get(self.config.node_id)
        if self._has_started_replicas or broker is None:
            return
        if broker.incarnation_id == parts.incarnation_id:
            self._has_started_replicas = True
            self._starting.start(self._serve_clients(parts))

    async def _serve_clients(self, parts: NodeParts) -> None:
        parts.replicas.start()
        # The logs have their configs. A broker whose disk is full is fenced until this frees it.
        self._maintenance.start()
        parts.groups.start()
        parts.transactions.start()
        await parts.client_listeners.serve()

    async def _wait_unfenced(self, parts: NodeParts, stopping: asyncio.Event) -> None:
        unfenced = self._waiting.start(parts.lifecycle.wait_unfenced())
        stopped = self._waiting.start(stopping.wait())
        try:
            await asyncio.wait((unfenced, stopped), return_when=asyncio.FIRST_COMPLETED)
            if unfenced.done():
                unfenced.result()
                log.info("node %d serves clients on %s", self.config.node_id, self.address)
        finally:
            await self._waiting.stop()

    def _start_reporter(self, parts: NodeParts) -> None:
        if not self.config.metrics_enable:
            return
        name = f"metrics-{self.config.node_id}"
        self._reporter = MetricsReporter(
            parts.services,
            node_id=self.config.node_id,
            pace=Pace(
                self.config.metrics_interval_ms,
                cpu_percent=self.config.metrics_cpu_percent,
                rows_per_s=self.config.metrics_rows_per_second,
            ),
            voters=len(parts.quorum.config.voters),
            connect=partial(parts.connect_to_broker, client_id=name),
        )
        self._reporter.start()

    def _maintain(self) -> Iterator[None]:
        """Retention, delayed deletions and flushes that are due."""
        assert self._parts is not None
        parts = self._parts
        parts.services.authorization.tell_denials()
        return parts.logs.upkeep(self._clock.wall_ms(), parts.replicas.high_watermarks())

    async def stop(self) -> None:
        """Hand the partitions over, then stop everything in the reverse order."""
        parts = self._parts
        if parts is None:
            return
        await self._starting.stop()
        await self._maintenance.stop()
        if self._reporter is not None:
            await self._reporter.stop()
        broker_epoch = parts.metadata.broker_epoch
        if self._has_started_replicas and self.config.controlled_shutdown_enable:
            await self._say_goodbye(parts)
        await parts.lifecycle.stop()
        await parts.client_listeners.close()
        if self._has_started_replicas:
            await parts.transactions.stop()
            await parts.groups.stop()
            await parts.replicas.close()
        await parts.quorum.stop()
        await parts.controller.close()
        if parts.controller_listener is not None:
            await parts.controller_listener.close()
        parts.logs.shutdown(broker_epoch=broker_epoch)
        log.info("node %d stopped", self.config.node_id)

    async def _say_goodbye(self, parts: NodeParts) -> None:
        """Controlled shutdown, unless there is no controller left that could be asked."""
        timeout_ms = self.config.controlled_shutdown_timeout_ms
        goodbye = self._waiting.start(parts.lifecycle.controlled_shutdown(timeout_ms))
        leaderless_since_ms: int | None = None
        while not goodbye.done():
            await asyncio.wait((goodbye,), timeout=GOODBYE_CHECK_S)
            now_ms = self._clock.monotonic_ms()
            if parts.quorum.leader_id is not None:
                leaderless_since_ms = None
            elif leaderless_since_ms is None:
                leaderless_since_ms = now_ms
            elif now_ms - leaderless_since_ms > LEADERLESS_MS_MAX:
                goodbye.cancel()
        if goodbye.cancelled() or not goodbye.result():
            log.warning("no controller let this broker go: its partitions are elected later")
