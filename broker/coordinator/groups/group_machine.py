"""The way into a classic group: `handle(group, event)` returns the effects of one event."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from broker.coordinator.groups.group_events import (
    GroupEffect,
    GroupEvent,
    GroupStored,
    GroupUnloaded,
    HeartbeatReceived,
    JoinRequested,
    LeaveRequested,
    SyncRequested,
    TimePassed,
)
from broker.coordinator.groups.group_join import handle_join
from broker.coordinator.groups.group_session import (
    handle_heartbeat,
    handle_leave,
    handle_stored,
    handle_sync,
    handle_time,
    handle_unloaded,
)
from broker.coordinator.groups.group_state import ClassicGroup

_HANDLERS: Final[Mapping[type[GroupEvent], Callable[[ClassicGroup, Any], None]]] = {
    JoinRequested: handle_join,
    SyncRequested: handle_sync,
    HeartbeatReceived: handle_heartbeat,
    LeaveRequested: handle_leave,
    GroupStored: handle_stored,
    TimePassed: handle_time,
    GroupUnloaded: handle_unloaded,
}


def handle(group: ClassicGroup, event: GroupEvent) -> list[GroupEffect]:
    """Let one event happen to a group; the effects are to be carried out in their order."""
    _HANDLERS[type(event)](group, event)
    effects, group.effects = group.effects, []
    return effects
