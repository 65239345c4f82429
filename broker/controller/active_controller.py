"""The active controller of the cluster: decides on an image that runs ahead of the commits.

Kafka's QuorumController in small: one decision after another, each on the image with all
records appended so far; the answer is given once the records are committed. When leadership is
lost the image that ran ahead is dropped.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from broker.background import Tasks, Timer, log_failure
from broker.clock import Clock
from broker.controller.brokers import (
    Heartbeat,
    HeartbeatAnswer,
    RegisterBroker,
    check_register,
    decide_fence,
    decide_heartbeat,
    decide_register,
    is_to_leave,
)
from broker.controller.config_control import UNCLEAN_CONFIG
from broker.controller.decision import Decide, Decision
from broker.controller.elections import (
    CHANGES_MAX,
    IsUncleanEnabled,
    decide_lead_away,
    decide_online_elections,
)
from broker.controller.errors import NotControllerError, UnreplayableError
from broker.controller.heartbeats import BrokerSessions
from broker.controller.periodic_elections import ControllerSettings, PeriodicElections
from broker.controller.topics import TopicDefaults
from broker.metadata.authorization import Authorization
from broker.metadata.client_quotas import ClientQuotas
from broker.metadata.effective_configs import (
    ConfigEntry,
    NodeConfig,
    describe_topic_configs,
    topic_flag,
)
from broker.metadata.image import MetadataImage
from broker.metadata.record_codec import encode_record
from broker.metadata.records import MetadataRecord
from broker.metadata.replay import replay_batch
from broker.raft.errors import NotLeaderError
from broker.raft.node import QuorumNode
from broker.raft.timers import sleep_ms

T = TypeVar("T")

OWNER: Final = "controller"
SESSION_CHECK_MS_MIN: Final = 50

log = logging.getLogger(__name__)


def _replay_ahead(
    image: MetadataImage, records: Sequence[MetadataRecord]
) -> tuple[list[bytes], MetadataImage]:
    """Values for the log, and the image that every node will make of them.

    Raises UnreplayableError.
    """
    try:
        values = [encode_record(record) for record in records]
        offset = image.offset + len(values)
        return values, replay_batch(image, records, offset=offset, epoch=image.epoch).image
    except Exception as error:
        log.exception("records that no node could replay are not appended")
        raise UnreplayableError(
            f"The change cannot be replayed and was not made: {type(error).__name__}: {error}"
        ) from error


def _only_clean(_: str) -> bool:
    """Unclean elections come later (`PeriodicElections`)."""
    return False


class ActiveController:
    """Exists on every node; decides only between `activate` and `deactivate`."""

    def __init__(
        self,
        *,
        quorum: QuorumNode,
        clock: Clock,
        settings: ControllerSettings,
        broker_config: NodeConfig,
        topic_defaults: TopicDefaults,
        bootstrap: Sequence[MetadataRecord] = (),
        authorization: Authorization | None = None,
        quotas: ClientQuotas | None = None,
    ) -> None:
        self.topic_defaults = topic_defaults
        self.authorization = authorization or Authorization()
        self.quotas = quotas or ClientQuotas()
        self.quorum = quorum
        self._clock = clock
        self._settings = settings
        self._broker_config = broker_config
        self._image: MetadataImage | None = None
        self._sessions = BrokerSessions(session_timeout_ms=settings.session_timeout_ms)
        self._timer = Timer(OWNER, self._tick, log_failure)
        self._elections = PeriodicElections(settings, self.is_unclean_enabled)
        self._steps = Tasks(OWNER, log_failure)
        self._fencing: set[int] = set()
        self._bootstrap = bootstrap

    @property
    def is_active(self) -> bool:
        """Whether this node decides."""
        return self._image is not None

    @property
    def image(self) -> MetadataImage:
        """The image with everything appended. Raises NotControllerError."""
        if self._image is None:
            raise NotControllerError("This is not the correct controller for this cluster.")
        return self._image

    def activate(self, image: MetadataImage) -> None:
        """Begin to decide; `image` holds all that was ever committed or appended."""
        log.info("active controller from offset %d", image.offset)
        now_ms = self._clock.monotonic_ms()
        self._image = image
        unfenced = [broker.id for broker in image.brokers.values() if not broker.fenced]
        self._sessions.begin(unfenced, now_ms, grace_ms=self._settings.first_grace_ms)
        self._elections.begin(now_ms)
        self._set_timer()
        if self._bootstrap and not (image.brokers or image.topics or image.scram):
            self._found_cluster()
        self._steps.start(self._elect_leaders(_only_clean))

    def _found_cluster(self) -> None:
        """No broker has ever registered: its first records are those that the file tells."""
        try:
            self.apply(lambda _: Decision(tuple(self._bootstrap), None))
        except NotControllerError:
            return  # another node founds it

    def deactivate(self) -> None:
        """Another node decides, or nobody."""
        if self._image is not None:
            log.info("no longer the active controller")
        self._image = None
        self._timer.cancel()

    def apply(self, decide: Decide[T]) -> tuple[T, int]:
        """Decide, replay and append: the response, and the offset that must commit before it is
        given. Nothing is appended that every node could not replay.

        Raises NotControllerError, UnreplayableError, and what `decide` raises.
        """
        image = self.image
        decision = decide(image)
        if decision.records:
            values, after = _replay_ahead(image, decision.records)
            try:
                offset = self.quorum.append(values)
            except NotLeaderError as error:
                raise NotControllerError(str(error)) from error
            self._image = replace(after, offset=offset, epoch=self.quorum.core.epoch)
        return decision.response, self.image.offset

    async def run(self, decide: Decide[T]) -> T:
        """Decide, and answer when everything the decision saw is committed.

        Raises NotControllerError, also when leadership ended before the commit; and what
        `decide` raises.
        """
        response, offset = self.apply(decide)
        try:
            await self.quorum.wait_committed(offset)
        except NotLeaderError as error:
            raise NotControllerError(str(error)) from error
        return response

    async def dry_run(self, decide: Decide[T]) -> T:
        """Answers as the command would, and appends nothing (validate_only)."""

        def decide_only(image: MetadataImage) -> Decision[T]:
            return Decision((), decide(image).response)

        return await self.run(decide_only)

    def is_unclean_enabled(self, topic: str) -> bool:
        """Whether the topic prefers a leader that lost records to none."""
        return topic_flag(self.image, self._broker_config, topic, UNCLEAN_CONFIG)

    def describe_topic(self, own: Mapping[str, str | None]) -> list[ConfigEntry]:
        """All configs of a topic with these of its own, as in force on this broker."""
        return describe_topic_configs(self.image, self._broker_config, own)

    def wall_ms(self, monotonic_ms: int) -> int:
        """A moment of the monotonic clock as time since the epoch; -1 stays -1."""
        if monotonic_ms < 0:
            return -1
        return self._clock.wall_ms() - (self._clock.monotonic_ms() - monotonic_ms)

    async def register(self, command: RegisterBroker) -> int:
        """The new broker epoch. Raises DuplicateBrokerError, InconsistentClusterError."""
        now_ms = self._clock.monotonic_ms()
        is_valid = self._sessions.is_valid(command.broker_id, now_ms)
        old = check_register(command, self.image, has_valid_session=is_valid)
        if old is not None and not old.fenced:
            await self.lead_away(command.broker_id)
        epoch = await self.run(
            lambda image: decide_register(
                command,
                image,
                has_valid_session=is_valid,
                is_unclean_enabled=self.is_unclean_enabled,
            )
        )
        self._sessions.end(command.broker_id)
        return epoch

    async def heartbeat(self, command: Heartbeat) -> HeartbeatAnswer:
        """Note the sign of life and what follows from it."""
        if is_to_leave(command, self.image):
            await self.lead_away(command.broker_id)
        broker = self.image.brokers.get(command.broker_id)
        was_fenced = broker is not None and broker.fenced
        answer, offset = self.apply(
            lambda image: decide_heartbeat(
                command, image, is_unclean_enabled=self.is_unclean_enabled
            )
        )
        if answer.is_fenced:
            self._sessions.end(command.broker_id)
        else:
            self._sessions.touch(command.broker_id, self._clock.monotonic_ms())
            self._set_timer()
        if was_fenced and not answer.is_fenced:
            self._steps.start(self._elect_leaders(self.is_unclean_enabled))
        try:
            await self.quorum.wait_committed(offset)
        except NotLeaderError as error:
            raise NotControllerError(str(error)) from error
        return answer

    async def lead_away(self, broker_id: int) -> None:
        """Partitions leave a broker step by step until CHANGES_MAX are left at most; others are
        served in between. One that is at work and comes back into ISRs is not waited for."""
        registered = self.image.brokers.get(broker_id)
        for _ in range(self._steps_max()):
            broker = self.image.brokers.get(broker_id)
            if broker is None or registered is None or broker.epoch != registered.epoch:
                break
            is_led_away, _ = self.apply(
                lambda image: decide_lead_away(broker_id, image, self.is_unclean_enabled)
            )
            if not is_led_away:
                break
            await sleep_ms(0)

    def _steps_max(self) -> int:
        """Steps in which all partitions of the cluster can change once."""
        return sum(len(topic.partitions) for topic in self.image.topics.values()) // CHANGES_MAX

    async def _elect_leaders(self, is_unclean_enabled: IsUncleanEnabled) -> None:
        """Step by step, wherever a replica may lead: its broker came back, or the former
        controller ended on its way."""
        try:
            is_more = True
            while is_more:
                is_more, _ = self.apply(
                    lambda image: decide_online_elections(image, is_unclean_enabled)
                )
                await sleep_ms(0)
        except NotControllerError:
            return

    def fence_gone(self, broker_id: int) -> None:
        """The broker's process is known to be gone: fence it without waiting for its session."""
        if self._image is None:
            return
        broker = self._image.brokers.get(broker_id)
        if broker is not None and not broker.fenced and broker_id not in self._fencing:
            log.warning("broker %d is gone", broker_id)
            try:
                self._fence(broker_id)
            except NotControllerError:
                self.deactivate()

    def _tick(self) -> None:
        """Fence who is silent; every few minutes, hold the elections nobody asked for."""
        now_ms = self._clock.monotonic_ms()
        for step in self._due(now_ms):
            try:
                step()
            except NotControllerError:
                self.deactivate()
                return
            except Exception as error:  # noqa: BLE001  # the other brokers are judged all the same
                log_failure(OWNER, error)
        self._set_timer()

    def _due(self, now_ms: int) -> list[Callable[[], object]]:
        steps: list[Callable[[], object]] = []
        for broker_id in self._sessions.expired(now_ms):
            log.warning("broker %d is silent", broker_id)
            steps.append(partial(self._fence, broker_id))
        if now_ms >= self._elections.due_at_ms:
            steps.append(lambda: self.apply(lambda image: self._elections.decide(image, now_ms)))
        return steps

    def _fence(self, broker_id: int) -> None:
        """Fence a broker now or, where there are thousands of partitions, once they have left it.
        Until then it counts as at work, so that another controller goes on where this one ends."""
        self._sessions.end(broker_id)
        broker = self.image.brokers.get(broker_id)
        if broker is None or not self._steps_max():
            self._fence_now(broker_id)
        elif broker_id not in self._fencing:
            self._fencing.add(broker_id)
            self._steps.start(self._fence_in_steps(broker_id, broker.epoch))

    def _fence_now(self, broker_id: int) -> None:
        log.warning("broker %d is fenced", broker_id)
        self._sessions.end(broker_id)
        self.apply(
            lambda image: decide_fence(broker_id, image, is_unclean_enabled=self.is_unclean_enabled)
        )

    async def _fence_in_steps(self, broker_id: int, epoch: int) -> None:
        try:
            await self.lead_away(broker_id)
            broker = self.image.brokers.get(broker_id)
            if broker is not None and broker.epoch == epoch:
                self._fence_now(broker_id)
        except NotControllerError:
            return
        finally:
            self._fencing.discard(broker_id)

    def _set_timer(self) -> None:
        deadline_ms = self._sessions.next_deadline_ms()
        wake_ms = self._elections.due_at_ms
        if deadline_ms is not None:
            wake_ms = min(wake_ms, deadline_ms)
        delay_ms = wake_ms - self._clock.monotonic_ms()
        self._timer.set(max(SESSION_CHECK_MS_MIN, delay_ms))
