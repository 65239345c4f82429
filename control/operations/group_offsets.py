"""Resetting a group's offsets: first what would change, then the change."""

from collections.abc import Iterable
from dataclasses import dataclass

from control.kafka.admin import KafkaAdmin
from control.kafka.ports import OffsetSpec
from control.model.ids import TopicPartition
from control.operations.errors import InvalidInputError


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetReset:
    """One partition: committed now (null without a commit), and after the reset."""

    topic: str
    partition: int
    before: int | None
    after: int
    log_start_offset: int
    high_watermark: int

    @property
    def key(self) -> TopicPartition:
        """The partition's name."""
        return TopicPartition(self.topic, self.partition)


async def preview_reset(
    admin: KafkaAdmin, group_id: str, topics: Iterable[str], to: str
) -> tuple[OffsetReset, ...]:
    """What resetting to `to` would do: earliest, latest, an offset, ``+N``/``-N`` from now
    committed, or ``@MS`` for a time. The result stays inside each log.

    :raises InvalidInputError: `to` is none of these, or the group has no commits to shift.
    """
    metadata = await admin.topics(sorted(set(topics)))
    keys = [partition.key for topic in metadata for partition in topic.partitions]
    committed = await admin.groups.committed_offsets(group_id)
    first = await admin.offsets.list_offsets(keys, OffsetSpec.EARLIEST)
    end = await admin.offsets.list_offsets(keys, OffsetSpec.LATEST)
    at_time = await admin.offsets.list_offsets(keys, _time_ms(to)) if to.startswith("@") else {}
    resets = []
    for key in keys:
        low, high = first[key].offset, end[key].offset
        found = at_time[key].offset if at_time else -1
        wanted = _wanted(to, committed.get(key), (low, high), found)
        if wanted is not None:
            resets.append(
                OffsetReset(
                    topic=key.topic,
                    partition=key.partition,
                    before=committed.get(key),
                    after=min(max(wanted, low), high),
                    log_start_offset=low,
                    high_watermark=high,
                )
            )
    return tuple(resets)


async def apply_reset(admin: KafkaAdmin, group_id: str, resets: Iterable[OffsetReset]) -> None:
    """Commit what was previewed.

    :raises InvalidInputError: the group has members, which would overwrite it.
    """
    group_ids = {group.group_id for group in await admin.groups.list_groups()}
    if group_id in group_ids:
        described = await admin.groups.describe_group(group_id)
        if described.members:
            members = len(described.members)
            raise InvalidInputError(
                {"group": f"{group_id} has {members} members; stop its consumers first"}
            )
    await admin.groups.commit_offsets(group_id, {reset.key: reset.after for reset in resets})


def _wanted(to: str, committed: int | None, log: tuple[int, int], found: int) -> int | None:
    match to:
        case "earliest":
            return log[0]
        case "latest":
            return log[1]
    if to.startswith("@"):
        return found if found >= 0 else log[1]
    if to.startswith(("+", "-")):
        return None if committed is None else committed + _whole(to)
    return _whole(to)


def _time_ms(to: str) -> int:
    return _whole(to[1:])


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        reason = f"{text!r} is not earliest, latest, an offset, +N, -N or @MILLISECONDS"
        raise InvalidInputError({"to": reason}) from error
