"""This node as a broker in the eyes of the controller: register, beat, say goodbye."""

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final
from uuid import UUID

from broker.background import Tasks, end_process
from broker.clock import Clock
from broker.controller.controller_channel import ControllerChannel
from broker.controller.errors import ControllerUnavailableError, InconsistentClusterError
from broker.metadata.metadata_service import MetadataService
from broker.metadata.records import BrokerEndpoint
from broker.protocol import codec
from broker.raft.timers import sleep_ms

BROKER_REGISTRATION: Final = 62
BROKER_REGISTRATION_VERSION: Final = 4
BROKER_HEARTBEAT: Final = 63
BROKER_HEARTBEAT_VERSION: Final = 2
LANE: Final = "heartbeat"
ATTEMPT_MS_MAX: Final = 1_000
POLL_MS: Final = 10
GOODBYE_STEP_MS: Final = 50

STALE_BROKER_EPOCH: Final = 77
DUPLICATE_BROKER_REGISTRATION: Final = 101
BROKER_ID_NOT_REGISTERED: Final = 102
INCONSISTENT_CLUSTER_ID: Final = 104

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerIdentity:
    """Identity with which a process registers; `incarnation_id` is new for each start."""

    broker_id: int
    cluster_id: str
    incarnation_id: UUID
    endpoints: tuple[BrokerEndpoint, ...]
    rack: str | None
    log_dir: UUID
    """Id of its one log directory."""


class BrokerLifecycle:
    """Registers, then beats every `heartbeat_interval_ms` until it is stopped.

    A registration that the controller has forgotten or replaced is made again. While `is_able`
    says no, each heartbeat asks to be fenced. Each tells whether the log directory is cordoned.
    """

    def __init__(
        self,
        *,
        identity: BrokerIdentity,
        controller: ControllerChannel,
        metadata: MetadataService,
        clock: Clock,
        heartbeat_interval_ms: int,
        is_able: Callable[[], bool] = lambda: True,
        is_cordoned: Callable[[], bool] = lambda: False,
    ) -> None:
        self._identity = identity
        self._controller = controller
        self._metadata = metadata
        self._clock = clock
        self._heartbeat_interval_ms = heartbeat_interval_ms
        self._is_able = is_able
        self._is_cordoned = is_cordoned
        self._broker_epoch = -1
        self._wants_shutdown = False
        self._may_stop = False
        self._error: InconsistentClusterError | None = None
        self._tasks = Tasks("registration of this broker", end_process)

    def start(self) -> None:
        """Register and beat in the background."""
        self._tasks.start(self._run())

    async def wait_unfenced(self) -> None:
        """Return when this node's image shows it at work. Raises InconsistentClusterError."""
        while True:
            broker = self._metadata.image.brokers.get(self._identity.broker_id)
            is_ours = broker is not None and broker.epoch == self._broker_epoch
            if broker is not None and is_ours and not broker.fenced:
                return
            if self._error is not None:
                raise self._error
            await sleep_ms(POLL_MS)

    async def controlled_shutdown(self, timeout_ms: int) -> bool:
        """Have the partitions led by others; whether the controller let us go in time."""
        await self._tasks.stop()
        self._wants_shutdown = True
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        while not self._may_stop and self._clock.monotonic_ms() < deadline_ms:
            remaining_ms = deadline_ms - self._clock.monotonic_ms()
            try:
                await self._beat(timeout_ms=min(ATTEMPT_MS_MAX, remaining_ms))
            except ControllerUnavailableError as error:
                log.debug("controlled shutdown: %s", error)
            if not self._may_stop:
                await sleep_ms(GOODBYE_STEP_MS)
        return self._may_stop

    async def stop(self) -> None:
        """End the heartbeats without a word."""
        await self._tasks.stop()

    async def _run(self) -> None:
        while self._error is None:
            try:
                if self._broker_epoch < 0:
                    await self._register()
                if self._broker_epoch >= 0:
                    await self._beat(timeout_ms=ATTEMPT_MS_MAX)
            except ControllerUnavailableError as error:
                log.info("broker %d: %s", self._identity.broker_id, error)
            is_registered = self._broker_epoch >= 0
            await sleep_ms(self._heartbeat_interval_ms if is_registered else GOODBYE_STEP_MS)

    async def _register(self) -> None:
        identity = self._identity
        message = codec.build_request(
            BROKER_REGISTRATION,
            BROKER_REGISTRATION_VERSION,
            broker_id=identity.broker_id,
            cluster_id=identity.cluster_id,
            incarnation_id=identity.incarnation_id,
            listeners=[asdict(endpoint) for endpoint in identity.endpoints],
            features=[],
            rack=identity.rack,
            log_dirs=[identity.log_dir],
        )
        answer = await self._submit(
            BROKER_REGISTRATION, BROKER_REGISTRATION_VERSION, message, ATTEMPT_MS_MAX
        )
        self._take_registration(answer)

    def _take_registration(self, answer: Any) -> None:
        if answer.error_code == 0:
            self._broker_epoch = int(answer.broker_epoch)
            log.info("registered with broker epoch %d", self._broker_epoch)
        elif answer.error_code == INCONSISTENT_CLUSTER_ID:
            self._error = InconsistentClusterError(
                f"this node has cluster.id {self._identity.cluster_id}, the quorum another one"
            )
        elif answer.error_code == DUPLICATE_BROKER_REGISTRATION:
            log.warning(
                "broker id %d is taken by another process, or by our last run until its session "
                "ends; trying again",
                self._identity.broker_id,
            )
        else:
            log.warning("registration refused: %r", answer.error_code)

    async def _beat(self, *, timeout_ms: int) -> None:
        message = codec.build_request(
            BROKER_HEARTBEAT,
            BROKER_HEARTBEAT_VERSION,
            broker_id=self._identity.broker_id,
            broker_epoch=self._broker_epoch,
            current_metadata_offset=self._metadata.image.offset,
            want_fence=not self._is_able(),
            want_shut_down=self._wants_shutdown,
            cordoned_log_dirs=[self._identity.log_dir] if self._is_cordoned() else [],
        )
        answer = await self._submit(BROKER_HEARTBEAT, BROKER_HEARTBEAT_VERSION, message, timeout_ms)
        if answer.error_code in (STALE_BROKER_EPOCH, BROKER_ID_NOT_REGISTERED):
            log.warning("the controller does not know us: %r", answer.error_code)
            self._may_stop = self._wants_shutdown
            self._broker_epoch = -1
        elif answer.error_code == 0:
            self._may_stop = answer.should_shut_down and self._wants_shutdown

    async def _submit(self, api_key: int, version: int, message: Any, timeout_ms: int) -> Any:
        return await self._controller.submit(
            api_key, version, message, timeout_ms=timeout_ms, lane=LANE
        )
