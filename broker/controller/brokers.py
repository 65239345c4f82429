"""Registration, heartbeats and fencing of brokers (KIP-631)."""

from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from broker.controller.decision import Decision
from broker.controller.elections import (
    CHANGES_MAX,
    IsUncleanEnabled,
    build_broker_back,
    build_broker_gone,
    has_leaderships,
)
from broker.controller.errors import (
    BrokerNotRegisteredError,
    DuplicateBrokerError,
    InconsistentClusterError,
    InvalidRegistrationError,
    StaleBrokerEpochError,
)
from broker.metadata.image import BrokerImage, MetadataImage
from broker.metadata.records import (
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBroker:
    """A broker's process introduces itself; `incarnation_id` is new for each process."""

    broker_id: int
    cluster_id: str
    incarnation_id: UUID
    endpoints: tuple[BrokerEndpoint, ...]
    rack: str | None
    log_dirs: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """A broker's sign of life."""

    broker_id: int
    broker_epoch: int
    metadata_offset: int
    wants_fence: bool
    wants_shutdown: bool
    cordoned_log_dirs: tuple[UUID, ...] | None = None
    """None: the broker does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatAnswer:
    """The controller's view of the broker."""

    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool


class BrokerState(Enum):
    """Kafka's BrokerControlState."""

    FENCED = "registered, leads nothing, in no ISR"
    UNFENCED = "at work"
    CONTROLLED_SHUTDOWN = "hands its partitions over"
    SHUTDOWN_NOW = "may stop"


def decide_register(
    command: RegisterBroker,
    image: MetadataImage,
    *,
    has_valid_session: bool,
    is_unclean_enabled: IsUncleanEnabled,
) -> Decision[int]:
    """The broker epoch: the offset of the registration record, which comes first.

    Raises what `check_register` raises.
    """
    old = check_register(command, image, has_valid_session=has_valid_session)
    records: list[MetadataRecord] = [
        RegisterBrokerRecord(
            broker_id=command.broker_id,
            incarnation_id=command.incarnation_id,
            broker_epoch=image.offset + 1,
            endpoints=command.endpoints,
            rack=command.rack,
            fenced=True,
            log_dirs=command.log_dirs,
        )
    ]
    if old is not None and not old.fenced:
        records += build_broker_gone(image, command.broker_id, is_unclean_enabled)
    return Decision(tuple(records), image.offset + 1)


def check_register(
    command: RegisterBroker, image: MetadataImage, *, has_valid_session: bool
) -> BrokerImage | None:
    """The registration that this one replaces.

    Raises InconsistentClusterError, InvalidRegistrationError, or DuplicateBrokerError while
    another process with this id, at another address, has a valid session.
    """
    if command.cluster_id != image.cluster_id:
        raise InconsistentClusterError(
            f"Expected cluster ID {image.cluster_id}, but got cluster ID {command.cluster_id}"
        )
    _check_registration(command)
    old = image.brokers.get(command.broker_id)
    if old is not None and has_valid_session and _may_live(old, command):
        raise DuplicateBrokerError(
            f"Another broker is registered with that broker id {command.broker_id}. If the "
            "broker was recently restarted this should self-resolve once the heartbeat manager "
            "expires the broker's session."
        )
    return old


def _check_registration(command: RegisterBroker) -> None:
    if command.broker_id < 0:
        raise InvalidRegistrationError(f"Broker ID {command.broker_id} is negative")
    if not command.endpoints or not all(endpoint.host for endpoint in command.endpoints):
        raise InvalidRegistrationError(f"Broker {command.broker_id} names no host to listen on")


def _may_live(old: BrokerImage, command: RegisterBroker) -> bool:
    """Whether the registered process may be another live one.

    A process that listens at an address of the old one has taken its port, so the old one
    is gone, and a broker that was killed can come back at once.
    """
    taken = {(endpoint.host, endpoint.port) for endpoint in command.endpoints}
    is_same_address = any((endpoint.host, endpoint.port) in taken for endpoint in old.endpoints)
    is_same_process = old.incarnation_id == command.incarnation_id
    return not old.fenced and not is_same_process and not is_same_address


def decide_heartbeat(
    command: Heartbeat, image: MetadataImage, *, is_unclean_enabled: IsUncleanEnabled
) -> Decision[HeartbeatAnswer]:
    """Fence, unfence, cordon, or move to controlled shutdown as the broker wishes and may.

    Of the leaders that follow, CHANGES_MAX are elected; the next decisions elect the others.
    Raises BrokerNotRegisteredError, StaleBrokerEpochError.
    """
    broker = check_epoch(image, command.broker_id, command.broker_epoch)
    state = next_state(command, broker, image)
    records: list[MetadataRecord] = []
    if state is BrokerState.UNFENCED and broker.fenced:
        records.append(_registration_change(broker, fenced=-1))
        records += build_broker_back(
            image, (broker.id,), is_unclean_enabled, changes_max=CHANGES_MAX
        )
    elif state is BrokerState.CONTROLLED_SHUTDOWN:
        if not broker.in_controlled_shutdown:
            records.append(_registration_change(broker, in_controlled_shutdown=1))
        records += build_broker_gone(image, broker.id, is_unclean_enabled, changes_max=CHANGES_MAX)
    elif state in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW) and not broker.fenced:
        records += build_fence(image, broker, is_unclean_enabled)
    if command.cordoned_log_dirs not in (None, broker.cordoned_log_dirs):
        records.append(_registration_change(broker, cordoned_log_dirs=command.cordoned_log_dirs))
    answer = HeartbeatAnswer(
        is_caught_up=command.metadata_offset >= broker.epoch,
        is_fenced=state in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW),
        should_shut_down=state is BrokerState.SHUTDOWN_NOW,
    )
    return Decision(tuple(records), answer)


def next_state(command: Heartbeat, broker: BrokerImage, image: MetadataImage) -> BrokerState:
    """The state after a heartbeat (BrokerHeartbeatManager.calculateNextBrokerState)."""
    if broker.fenced:
        if command.wants_shutdown:
            return BrokerState.SHUTDOWN_NOW
        is_ready = not command.wants_fence and command.metadata_offset >= broker.epoch
        return BrokerState.UNFENCED if is_ready else BrokerState.FENCED
    if broker.in_controlled_shutdown or command.wants_shutdown:
        if has_leaderships(image, broker.id):
            return BrokerState.CONTROLLED_SHUTDOWN
        return BrokerState.SHUTDOWN_NOW
    return BrokerState.FENCED if command.wants_fence else BrokerState.UNFENCED


def is_to_leave(command: Heartbeat, image: MetadataImage) -> bool:
    """Whether a heartbeat fences a broker that is at work.

    Raises BrokerNotRegisteredError, StaleBrokerEpochError.
    """
    broker = check_epoch(image, command.broker_id, command.broker_epoch)
    is_fenced = next_state(command, broker, image) in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW)
    return is_fenced and not broker.fenced


def decide_fence(
    broker_id: int, image: MetadataImage, *, is_unclean_enabled: IsUncleanEnabled
) -> Decision[bool]:
    """Fence a broker whose session expired; False when there was nothing to do."""
    broker = image.brokers.get(broker_id)
    if broker is None or broker.fenced:
        return Decision((), False)
    return Decision(tuple(build_fence(image, broker, is_unclean_enabled)), True)


def decide_unregister(
    broker_id: int, image: MetadataImage, *, is_unclean_enabled: IsUncleanEnabled
) -> Decision[None]:
    """Forget a broker. Raises BrokerNotRegisteredError."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise BrokerNotRegisteredError(f"Broker ID {broker_id} is not currently registered")
    records: list[MetadataRecord] = list(build_broker_gone(image, broker_id, is_unclean_enabled))
    records.append(UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.epoch))
    return Decision(tuple(records), None)


def build_fence(
    image: MetadataImage, broker: BrokerImage, is_unclean_enabled: IsUncleanEnabled
) -> list[MetadataRecord]:
    """The broker is fenced and its partitions led by others."""
    return [
        _registration_change(broker, fenced=1),
        *build_broker_gone(image, broker.id, is_unclean_enabled),
    ]


def check_epoch(image: MetadataImage, broker_id: int, broker_epoch: int) -> BrokerImage:
    """The broker. Raises BrokerNotRegisteredError, StaleBrokerEpochError."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise BrokerNotRegisteredError(f"Broker ID {broker_id} is not currently registered")
    if broker.epoch != broker_epoch:
        raise StaleBrokerEpochError(
            f"Expected broker epoch {broker.epoch}, but got broker epoch {broker_epoch}"
        )
    return broker


def _registration_change(
    broker: BrokerImage,
    *,
    fenced: int = 0,
    in_controlled_shutdown: int = 0,
    cordoned_log_dirs: tuple[UUID, ...] | None = None,
) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id=broker.id,
        broker_epoch=broker.epoch,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
        cordoned_log_dirs=cordoned_log_dirs,
    )
