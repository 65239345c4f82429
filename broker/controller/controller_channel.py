"""`node.controller`: the way of every request to the active controller, wherever it is.

A request is executed here when this node is the active controller; else it travels in an
Envelope (key 58) to the controller listener of the one that is, and back. The answer carries
the offset that it stands on, so that this node's image has it before the client hears of it: a
Metadata request right after CreateTopics on the same broker knows the topic.
"""

import struct
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from broker.background import in_thread_if_large
from broker.clock import Clock
from broker.controller.active_controller import ActiveController
from broker.controller.errors import ControllerUnavailableError, NotControllerError
from broker.controller.internal_topics import (
    CREATE_TOPICS,
    CREATE_TOPICS_VERSION,
    InternalTopic,
    build_creation,
)
from broker.controller.snapshot_generator import SnapshotGenerator
from broker.metadata.delta import ReplayedBatch
from broker.metadata.image import MetadataImage
from broker.metadata.metadata_service import MetadataService
from broker.metadata.record_codec import decode_record
from broker.metadata.replay import replay_batch
from broker.metadata.snapshot import build_image, image_difference
from broker.protocol import codec
from broker.protocol.request_context import ITSELF, RequestContext, address_bytes
from broker.raft.config import QuorumConfig, Voter
from broker.raft.metadata_log import CommittedBatch
from broker.raft.node import QuorumNode
from broker.raft.ports import Peer
from broker.raft.snapshot_files import Snapshot
from broker.raft.timers import sleep_ms

ENVELOPE: Final = 58
ENVELOPE_VERSION: Final = 0
TOPIC_ALREADY_EXISTS: Final = 36
ALL_BROKERS_WAIT_MS: Final = 1_500
TIMEOUT_MS_DEFAULT: Final = 10_000
ADMIN_LANE: Final = "admin"
PAUSE_MS_MIN: Final = 25
PAUSE_MS_MAX: Final = 250
EXCHANGE_S_MAX: Final = 5.0
CONTROLLER_LISTENER: Final = "CONTROLLER"
CATCH_UP_MS_MAX: Final = 1_000
CATCH_UP_STEP_MS: Final = 5
SIZE_PREFIX_BYTES: Final = 4
_OFFSET: Final = struct.Struct(">q")


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerRequest:
    """A request at the active controller; `context` is that of the client that sent it."""

    api_key: int
    api_version: int
    message: Any
    context: RequestContext


Execute = Callable[[ActiveController, ControllerRequest], Awaitable[Any]]
"""The response message, made on the active node. Raises NotControllerError."""


class ControllerChannel:
    """Sends commands to the active controller, and keeps the metadata service up to date.

    `apis` tells how each API key is executed (broker.handlers.controller_apis). `connect` makes
    a connection to a voter's CONTROLLER listener. Set as the quorum's listener.
    """

    def __init__(
        self,
        *,
        quorum: QuorumNode,
        active: ActiveController,
        metadata: MetadataService,
        clock: Clock,
        connect: Callable[[Voter], Peer],
        apis: Mapping[int, Execute],
        internal_topics: Mapping[str, InternalTopic],
    ) -> None:
        self.quorum = quorum
        self.active = active
        self._config: QuorumConfig = quorum.config
        self._metadata = metadata
        self._clock = clock
        self._connect = connect
        self._apis = apis
        self._internal_topics = internal_topics
        self._context = RequestContext(
            principal=ITSELF,
            listener_name=CONTROLLER_LISTENER,
            client_id=f"broker-{self._config.node_id}",
        )
        self._peers: dict[tuple[int, str], Peer] = {}
        self._snapshotter = SnapshotGenerator(quorum.log, quorum.fail)
        if (snapshot := quorum.take_snapshot()) is not None:
            metadata.restore(_image_of(snapshot, metadata.image.cluster_id))
            self._snapshotter.note_snapshot(len(snapshot.values))
        quorum.listener = self

    async def submit(
        self,
        api_key: int,
        api_version: int,
        message: Any,
        *,
        context: RequestContext | None = None,
        timeout_ms: int = TIMEOUT_MS_DEFAULT,
        lane: str = ADMIN_LANE,
    ) -> Any:
        """The response message to a request message; without a `context` it is this node's own.

        Tries again while the controller moves; requests of one lane share a connection and wait
        for each other. Raises ControllerUnavailableError (an OSError) when no controller
        answered in `timeout_ms`: whether the change was made is then unknown.
        """
        request = ControllerRequest(
            api_key=api_key,
            api_version=api_version,
            message=message,
            context=context or self._context,
        )
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        pause_ms = PAUSE_MS_MIN
        while True:
            try:
                remaining_ms = deadline_ms - self._clock.monotonic_ms()
                return await self._submit_once(request, lane, remaining_ms)
            except (NotControllerError, OSError) as error:
                if self._clock.monotonic_ms() + pause_ms > deadline_ms:
                    raise ControllerUnavailableError(
                        f"no active controller answered within {timeout_ms} ms: {error}"
                    ) from error
            await sleep_ms(pause_ms)
            pause_ms = min(2 * pause_ms, PAUSE_MS_MAX)

    async def execute(self, request: ControllerRequest) -> Any:
        """Execute here. Raises NotControllerError when this node is not the active one."""
        if not self.active.is_active:
            raise NotControllerError("This is not the correct controller for this cluster.")
        return await self._apis[request.api_key](self.active, request)

    async def execute_enveloped(self, request: bytes, context: RequestContext) -> bytes:
        """The answer to an Envelope's request: an offset, then the response without its size.

        `context` is that of the client, but for its name, which the request has.
        Raises NotControllerError.
        """
        size_bytes = len(request)
        decoded = await in_thread_if_large(size_bytes, codec.decode_request, request)
        response = await self.execute(
            ControllerRequest(
                api_key=decoded.api_key,
                api_version=decoded.api_version,
                message=decoded.message,
                context=replace(context, client_id=decoded.client_id),
            )
        )
        frame: bytes = await in_thread_if_large(
            size_bytes,
            codec.encode_response,
            *(decoded.api_key, decoded.api_version, decoded.correlation_id, response),
        )
        return _OFFSET.pack(self._metadata.image.offset) + frame[SIZE_PREFIX_BYTES:]

    async def ensure_internal_topic(self, name: str) -> None:
        """Create an internal topic if it is missing; returns when this node's image has it.

        Waits a little for all brokers to be active, so that the topic gets its replicas.
        Raises ControllerUnavailableError (an OSError), KeyError for a topic that is not internal.
        """
        topic = self._internal_topics[name]
        deadline_ms = self._clock.monotonic_ms() + ALL_BROKERS_WAIT_MS
        voters = len(self._config.voters)
        while not _has_brokers_for(topic.replication_factor, self._metadata.image, voters):
            if self._clock.monotonic_ms() > deadline_ms or name in self._metadata.image.topics:
                break
            await sleep_ms(PAUSE_MS_MIN)
        if name in self._metadata.image.topics:
            return
        active_brokers = len(self._metadata.image.active_brokers())
        creation = build_creation(
            topic, active_brokers=active_brokers, timeout_ms=TIMEOUT_MS_DEFAULT
        )
        answer = await self.submit(CREATE_TOPICS, CREATE_TOPICS_VERSION, creation)
        error = answer.topics[0].error_code
        if error not in (0, TOPIC_ALREADY_EXISTS):
            raise ControllerUnavailableError(f"cannot create {name}: {error!r}")

    async def close(self) -> None:
        """End the connections to other controllers."""
        self.active.deactivate()
        await self._snapshotter.stop()
        for peer in self._peers.values():
            await peer.close()

    # --- the quorum's listener -------------------------------------------------------------------

    def handle_committed(self, batch: CommittedBatch) -> None:
        """Replay; and become active once everything before this node's epoch is replayed."""
        records = [decode_record(value) for value in batch.values]
        self._metadata.publish(
            replay_batch(self._metadata.image, records, offset=batch.last_offset, epoch=batch.epoch)
        )
        self._snapshotter.note(len(records), self._metadata.image)
        leader = self.quorum.leader_state
        if leader is None or self.active.is_active:
            return
        if batch.last_offset >= leader.epoch_start_offset:
            self.active.activate(self._metadata.image)

    def prepare_snapshot(self, snapshot: Snapshot) -> Callable[[], None]:
        """In a thread: make another image. Subscribers hear of every difference at once."""
        old = self._metadata.image
        image = replace(_image_of(snapshot, old.cluster_id), controller_id=old.controller_id)
        changed = image_difference(old, image)

        def install() -> None:
            controller_id = self._metadata.controller_id  # may be another one by now
            replayed = replace(image, controller_id=controller_id)
            self._metadata.publish(ReplayedBatch(image=replayed, changed=changed))
            self._snapshotter.note_snapshot(len(snapshot.values))

        return install

    def handle_leader_change(self, epoch: int, leader_id: int | None) -> None:
        """The leader of the quorum is the active controller.

        What waits for the former one is asked again, unless a client wants it done once: a
        controller that hangs answers nobody, and the new one fences brokers that do not beat.
        """
        if leader_id != self._config.node_id or self.active.is_active:
            self.active.deactivate()
        self._metadata.set_controller(leader_id)
        for (node_id, lane), peer in self._peers.items():
            if node_id != leader_id and lane != ADMIN_LANE:
                peer.disconnect()

    def handle_voter_gone(self, voter_id: int) -> None:
        """A voter is a broker, too: its partitions need not wait for its session to end."""
        self.active.fence_gone(voter_id)

    # --- one attempt -----------------------------------------------------------------------------

    async def _submit_once(self, request: ControllerRequest, lane: str, timeout_ms: int) -> Any:
        leader_id = self.quorum.leader_id
        if leader_id is None:
            raise NotControllerError("the quorum has no leader right now")
        if leader_id == self._config.node_id:
            return await self.execute(request)
        timeout_s = min(timeout_ms / 1000, EXCHANGE_S_MAX)
        envelope = _envelope(request)
        peer = self._peer(leader_id, lane)
        answer = await peer.send(ENVELOPE, ENVELOPE_VERSION, envelope, timeout_s=timeout_s)
        if answer.error_code != 0 or answer.response_data is None:
            raise NotControllerError(f"node {leader_id} refused: {answer.error_code!r}")
        data = bytes(answer.response_data)
        (offset,) = _OFFSET.unpack_from(data)
        await self._catch_up(offset)
        return codec.decode_response(request.api_key, request.api_version, data[_OFFSET.size :])[1]

    async def _catch_up(self, offset: int) -> None:
        """Until this node has replayed what the answer stands on, for a bounded while."""
        deadline_ms = self._clock.monotonic_ms() + CATCH_UP_MS_MAX
        while self._metadata.image.offset < offset and self._clock.monotonic_ms() < deadline_ms:
            await sleep_ms(CATCH_UP_STEP_MS)

    def _peer(self, leader_id: int, lane: str) -> Peer:
        key = (leader_id, lane)
        if key not in self._peers:
            voters = {voter.id: voter for voter in self._config.voters}
            if leader_id not in voters:
                raise NotControllerError(f"controller.quorum.voters lacks node {leader_id}")
            self._peers[key] = self._connect(voters[leader_id])
        return self._peers[key]


def _envelope(request: ControllerRequest) -> Any:
    context = request.context
    frame = codec.encode_request(request.message, correlation_id=0, client_id=context.client_id)
    principal = None if context.principal is ITSELF else context.principal.to_bytes()
    return codec.build_request(
        ENVELOPE,
        ENVELOPE_VERSION,
        request_data=frame[SIZE_PREFIX_BYTES:],
        request_principal=principal,
        client_host_address=address_bytes(context.client_host),
    )


def _has_brokers_for(replication_factor: int, image: MetadataImage, voters: int) -> bool:
    """So many are active, or all that vote or registered before."""
    all_known = max(voters, len(image.brokers))
    return len(image.active_brokers()) >= min(replication_factor, all_known)


def _image_of(snapshot: Snapshot, cluster_id: str) -> MetadataImage:
    end_offset, epoch = snapshot.id.end_offset, snapshot.id.epoch
    return build_image(cluster_id, snapshot.values, offset=end_offset - 1, epoch=epoch)
