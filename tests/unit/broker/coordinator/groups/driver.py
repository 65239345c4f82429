"""Drives one group by hand: who asks what, when, and what came back."""

import itertools
from dataclasses import dataclass, field

from broker.coordinator.errors import CoordinatorError
from broker.coordinator.groups.group_events import (
    Answer,
    GroupEvent,
    GroupProtocol,
    GroupStored,
    HeartbeatReceived,
    JoinRequested,
    JoinResult,
    LeaveRequested,
    MemberIdentity,
    Result,
    StoreGroup,
    SyncRequested,
    SyncResult,
    TimePassed,
)
from broker.coordinator.groups.group_machine import handle
from broker.coordinator.groups.group_state import ClassicGroup
from broker.coordinator.records import GroupSnapshot

RANGE = (GroupProtocol(name="range", metadata=b"r"),)


@dataclass
class GroupDriver:
    """A group, a clock that the test moves, and everything that was answered by token."""

    group: ClassicGroup
    now_ms: int = 0
    answers: dict[int, Result] = field(default_factory=dict)
    stores: list[GroupSnapshot] = field(default_factory=list)
    tokens: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def drive(self, event: GroupEvent) -> None:
        for effect in handle(self.group, event):
            if isinstance(effect, Answer):
                assert effect.token not in self.answers, "answered twice"
                self.answers[effect.token] = effect.result
            else:
                assert isinstance(effect, StoreGroup)
                self.stores.append(effect.snapshot)
        self.group.check_invariants()

    def join(
        self,
        member_id: str = "",
        *,
        new_member_id: str = "m",
        instance: str | None = None,
        protocols: tuple[GroupProtocol, ...] = RANGE,
        protocol_type: str = "consumer",
        requires_known_member_id: bool = False,
        may_skip_assignment: bool = False,
    ) -> int:
        token = next(self.tokens)
        self.drive(
            JoinRequested(
                token=token,
                now_ms=self.now_ms,
                member_id=member_id,
                new_member_id=new_member_id,
                group_instance_id=instance,
                client_id="client",
                client_host="/127.0.0.1",
                session_timeout_ms=10_000,
                rebalance_timeout_ms=60_000,
                protocol_type=protocol_type,
                protocols=protocols,
                requires_known_member_id=requires_known_member_id,
                may_skip_assignment=may_skip_assignment,
            )
        )
        return token

    def joined(self, token: int) -> JoinResult:
        result = self.answers[token]
        assert isinstance(result, JoinResult)
        return result

    def sync(
        self,
        member_id: str,
        assignments: dict[str, bytes] | None = None,
        *,
        generation_id: int | None = None,
        instance: str | None = None,
    ) -> int:
        token = next(self.tokens)
        self.drive(
            SyncRequested(
                token=token,
                now_ms=self.now_ms,
                member_id=member_id,
                group_instance_id=instance,
                generation_id=self._generation(generation_id),
                assignments=tuple((assignments or {}).items()),
            )
        )
        return token

    def _generation(self, generation_id: int | None) -> int:
        return self.group.generation_id if generation_id is None else generation_id

    def synced(self, token: int) -> SyncResult:
        result = self.answers[token]
        assert isinstance(result, SyncResult)
        return result

    def stored(self, error: CoordinatorError = CoordinatorError.NONE) -> None:
        """The log answers the oldest store that waits."""
        snapshot = self.stores.pop(0)
        self.drive(GroupStored(now_ms=self.now_ms, snapshot=snapshot, error=error))

    def heartbeat(
        self, member_id: str, *, generation_id: int | None = None, instance: str | None = None
    ) -> CoordinatorError:
        token = next(self.tokens)
        self.drive(
            HeartbeatReceived(
                token=token,
                now_ms=self.now_ms,
                member_id=member_id,
                group_instance_id=instance,
                generation_id=self._generation(generation_id),
            )
        )
        return self.answers[token].error

    def leave(self, *identities: MemberIdentity) -> int:
        token = next(self.tokens)
        self.drive(LeaveRequested(token=token, now_ms=self.now_ms, members=identities))
        return token

    def pass_time(self, ms: int) -> None:
        self.now_ms += ms
        self.drive(TimePassed(now_ms=self.now_ms))


def new_driver(*, initial_delay_ms: int = 0) -> GroupDriver:
    """An empty group; without an initial delay a first join is answered at once."""
    return GroupDriver(ClassicGroup(group_id="g", initial_delay_ms=initial_delay_ms))


def stable_pair() -> GroupDriver:
    """Members a (leader) and b, Stable in generation 2, both synced."""
    driver = new_driver()
    driver.join(new_member_id="a")
    joins = [driver.join(new_member_id="b"), driver.join("a")]
    assert all(driver.joined(token).error is CoordinatorError.NONE for token in joins)
    driver.sync("a", {"a": b"0", "b": b"1"})
    driver.sync("b")
    driver.stored()
    return driver
