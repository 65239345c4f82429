"""Decodes records of the bus to commands and events: the whole shape of its kind, or one error."""

from collections.abc import Mapping
from typing import Any

from control.move.change_codec import unpack
from control.move.commands import Command, ControlAction, ControlCommand, ReassignCommand
from control.move.events import Event, EventKind
from control.move.record_shapes import command_document, event_document
from control.move.throttle import THROTTLE_AUTO
from control.move.window import MoveWindow
from control.move.yields import YieldRules
from planner.waves import USUAL_WAVES, LeaderTurn, SizeOrder, WaveRules


class RecordError(ValueError):
    """A record is no command or event of a version that this release knows."""


def decode_command(value: bytes | None) -> Command:
    """The inverse of encode_command; keys of later versions are ignored.

    :raises RecordError: not a command.
    """
    try:
        document = command_document(value or b"")
        shared: dict[str, Any] = {
            "operation_id": document["operation_id"],
            "who": document.get("who", ""),
            "reason": document.get("reason", ""),
            "submitted_ms": document.get("submitted_ms", 0),
            "confirmed": document.get("confirmed", ""),
        }
        if document["kind"] == "control":
            action = ControlAction(document["action"])
            return ControlCommand(action=action, throttle=document.get("throttle"), **shared)
        return _decode_reassign(document, shared)
    except ValueError as error:
        raise RecordError(str(error)) from error


def _decode_reassign(document: Mapping[str, Any], shared: Mapping[str, Any]) -> ReassignCommand:
    return ReassignCommand(
        bootstrap=document["bootstrap"],
        cluster_id=document.get("cluster_id", ""),
        changes=unpack(document["changes"]),
        throttle=document.get("throttle", THROTTLE_AUTO),
        waves=_parse_waves(document),
        yields=YieldRules.parse(document.get("yields", {})),
        window=MoveWindow.parse(document.get("window")),
        elects_preferred=document.get("elects_preferred", True),
        allows_replication_factor_change=document.get("allows_replication_factor_change", False),
        is_strict=document.get("is_strict", True),
        rollback_of=document.get("rollback_of"),
        topic_ids=document.get("topic_ids", {}),
        **shared,
    )


def _parse_waves(document: Mapping[str, Any]) -> WaveRules:
    usual = USUAL_WAVES
    return WaveRules(
        partitions=document.get("partitions_per_wave", usual.partitions),
        per_broker=document.get("partitions_per_broker"),
        order=SizeOrder(document.get("wave_order", usual.order)),
        leaders=LeaderTurn(document.get("leaders_turn", usual.leaders)),
        spread_s=document.get("spread_s", 0.0),
    )


def decode_event(value: bytes | None) -> Event:
    """The inverse of encode_event.

    :raises RecordError: not an event of a kind we know.
    """
    try:
        document = event_document(value or b"")
    except ValueError as error:
        raise RecordError(str(error)) from error
    return Event(
        operation_id=document["operation_id"],
        kind=EventKind(document["kind"]),
        at_ms=document["at_ms"],
        message=document.get("message", ""),
        data=document["data"],
    )
