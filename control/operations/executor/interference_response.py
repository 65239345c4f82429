"""Answers of a run to what other tools do to its partitions."""

from collections.abc import Sequence

from control.kafka.ports import AdminPort
from control.model.ids import TopicPartition
from control.move.events import EventKind
from control.operations.executor.move_watch import MoveWatch
from control.operations.executor.run_context import RunContext
from control.operations.reassignment.facts import nears_min_isr, read_min_isr
from control.operations.reassignment.placements import Placements
from planner.in_sync import why_too_few, why_unsafe
from planner.proposal import PartitionChange


async def unsafe_by_now(
    admin: AdminPort, wave: Sequence[PartitionChange], places: Placements
) -> dict[TopicPartition, str]:
    """Changes that would drop what is in sync, or leave producers with acks=all fewer replicas in
    sync than they need, and why. Pre-flight judged so for the first wave; the last one may begin
    hours later, with other replicas in sync and another min.insync.replicas."""
    near = [c for c in wave if nears_min_isr(c, places.placed.get(c.key))]
    known = [c for c in near if c.key in places.placed and not places.is_moving(c)]
    min_isr = await read_min_isr(admin, {change.topic for change in known})
    found = {}
    for change in known:
        placed, after = places.placed[change.key], change.after
        why = why_unsafe(placed.replicas, after, placed.isr) or why_too_few(
            placed.replicas, after, placed.isr, min_isr.get(change.topic)
        )
        if why:
            found[change.key] = f"{why}: left as it is"
    return found


async def restored_orders(
    admin: AdminPort, watch: MoveWatch, context: RunContext
) -> dict[TopicPartition, str]:
    """Sets orders of replicas again that another tool has changed, each once; answers those that
    stay, and why."""
    stays: dict[TopicPartition, str] = {}
    for key in watch.others.reordered():
        after, item = watch.change_of[key].after, f"order of {key}"
        now = list(watch.places.placed[key].replicas)
        words = f"another tool has put its replicas into the order {now}"
        if item in context.state().interfered:
            stays[key] = f"{words}, for the second time"
            continue
        told = f"{key}: {words}; {list(after)} is set again"
        await context.emit(EventKind.INTERFERED, told, changed=[item])
        await context.hold()
        refused = await admin.alter_reassignments({key: after})
        stays |= {key: f"{words}: {error}" for key, error in refused.items()}
    return stays
