"""Members of a group by id, static members by instance id, ids handed out but unused."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from broker.coordinator.errors import CoordinatorError
from broker.coordinator.groups.group_events import GroupProtocol, JoinRequested

PENDING_BYTES_MAX: Final = 1024 * 1024
"""Of one group; some 7,000 ids of a usual length."""
_PENDING_ID_BYTES: Final = 100
"""What an id takes beside its text."""


@dataclass(slots=True, kw_only=True)
class Member:
    """One member; `join_token` and `sync_token` name the requests it waits with."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Sequence[GroupProtocol]
    assignment: bytes = b""
    join_token: int | None = None
    sync_token: int | None = None
    has_synced: bool = False
    is_new: bool = True
    """Joined in the running rebalance and has not been answered yet."""
    session_deadline_ms: int = 0

    @property
    def is_waiting(self) -> bool:
        """Its own request is parked here, so silence is not its fault."""
        return self.join_token is not None or self.sync_token is not None

    def metadata(self, protocol_name: str | None) -> bytes:
        """Metadata that the member sent for one protocol; empty when it never offered it."""
        return next((p.metadata for p in self.protocols if p.name == protocol_name), b"")

    def renew_session(self, now_ms: int) -> None:
        """A sign of life."""
        self.session_deadline_ms = now_ms + self.session_timeout_ms


def build_member(request: JoinRequested, member_id: str) -> Member:
    """The member that a first JoinGroup describes."""
    return Member(
        member_id=member_id,
        group_instance_id=request.group_instance_id,
        client_id=request.client_id,
        client_host=request.client_host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        protocols=tuple(request.protocols),
    )


@dataclass(slots=True)
class Roster:
    """Members in the order of joining, and the two side tables that point into them."""

    members: dict[str, Member] = field(default_factory=dict)
    static: dict[str, str] = field(default_factory=dict)
    """group.instance.id -> member id."""
    pending: dict[str, int] = field(default_factory=dict)
    """Member ids handed out with MEMBER_ID_REQUIRED -> deadline in ms; see `hand_out`."""

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Member]:
        return iter(self.members.values())

    def add(self, member: Member) -> None:
        """Add a member, which stops being pending."""
        self.pending.pop(member.member_id, None)
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static[member.group_instance_id] = member.member_id

    def hand_out(self, member_id: str, deadline_ms: int) -> None:
        """Keep an id until it is used, or its deadline (a session time-out away) is over.

        As in Kafka they do not count towards group.max.size. Beyond `PENDING_BYTES_MAX` the oldest
        is forgotten: its client hears UNKNOWN_MEMBER_ID and asks for another one.
        """
        self.pending[member_id] = deadline_ms
        size_bytes = sum(len(id_) + _PENDING_ID_BYTES for id_ in self.pending)
        while size_bytes > PENDING_BYTES_MAX:
            oldest = next(iter(self.pending))
            size_bytes -= len(oldest) + _PENDING_ID_BYTES
            del self.pending[oldest]

    def remove(self, member_id: str) -> Member:
        """Take a member out, and its instance id if it still holds it."""
        member = self.members.pop(member_id)
        instance = member.group_instance_id
        if instance is not None and self.static.get(instance) == member_id:
            del self.static[instance]
        return member

    def replace_static(self, instance: str, new_member_id: str) -> Member:
        """Give a restarted static member its new id; the old id is fenced from now on."""
        member = self.members.pop(self.static[instance])
        member.member_id = new_member_id
        self.add(member)
        return member

    def check(self, member_id: str, instance: str | None) -> CoordinatorError:
        """Is this member who it says it is (KIP-345's fencing)."""
        if instance is not None:
            if instance not in self.static:
                return CoordinatorError.UNKNOWN_MEMBER_ID
            if self.static[instance] != member_id:
                return CoordinatorError.FENCED_INSTANCE_ID
        return (
            CoordinatorError.NONE
            if member_id in self.members
            else CoordinatorError.UNKNOWN_MEMBER_ID
        )

    def candidate_protocols(self) -> set[str]:
        """Names that every member offers."""
        offers = [{protocol.name for protocol in member.protocols} for member in self]
        return set.intersection(*offers) if offers else set()

    def vote(self) -> str:
        """The candidate that most members prefer; ties go to the one voted for first.

        Members [range, sticky], [sticky, range], [sticky] have one candidate, sticky.
        """
        candidates = self.candidate_protocols()
        votes = Counter(
            next(protocol.name for protocol in member.protocols if protocol.name in candidates)
            for member in self
        )
        return votes.most_common(1)[0][0]

    def rebalance_timeout_ms(self) -> int:
        """The longest that any member asks to be waited for."""
        return max((member.rebalance_timeout_ms for member in self), default=0)
