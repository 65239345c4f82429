"""Rebuilding consumer groups from the newest record of each key. Pure."""

from broker.coordinator.consumer.consumer_group import ConsumerGroup
from broker.coordinator.consumer.consumer_member import ConsumerMember
from broker.coordinator.consumer.consumer_records import (
    CURRENT,
    GROUP,
    MEMBER,
    REGEX,
    TARGET,
    TARGET_EPOCH,
    ConsumerKey,
    decode_current,
    decode_group,
    decode_member,
    decode_regex,
    decode_target,
    decode_target_epoch,
)


class ConsumerReplay:
    """Groups so far; records come in any order."""

    def __init__(self) -> None:
        self._groups: dict[str, ConsumerGroup] = {}
        self._founded: set[str] = set()
        self._subscribed: set[tuple[str, str]] = set()

    def apply(self, key: ConsumerKey, value: bytes) -> None:
        """Account for one record.

        Raises:
            RecordFormatError: it cannot be read.
        """
        group = self._groups.setdefault(
            key.group_id, ConsumerGroup(group_id=key.group_id, session_timeout_ms=0)
        )
        known = group.members.get(key.name) or ConsumerMember(member_id=key.name)
        match key.kind:
            case kind if kind == GROUP:
                group.epoch, group.metadata_hash = decode_group(value)
                self._founded.add(key.group_id)
            case kind if kind == MEMBER:
                group.members[key.name] = decode_member(known, value)
                self._subscribed.add((key.group_id, key.name))
            case kind if kind == CURRENT:
                group.members[key.name] = decode_current(known, value)
            case kind if kind == TARGET_EPOCH:
                group.target_epoch = decode_target_epoch(value)
            case kind if kind == TARGET:
                group.target[key.name] = decode_target(value)
            case kind if kind == REGEX:
                group.regexes[key.name] = decode_regex(value)

    def finish(self) -> dict[str, ConsumerGroup]:
        """Groups by id; what the log tells of no group or of no member is left out."""
        found = {it: group for it, group in self._groups.items() if it in self._founded}
        for group_id, group in found.items():
            members, group.members = group.members, {}
            for member_id, member in members.items():
                if (group_id, member_id) in self._subscribed:
                    group.put(member)
            group.target = {it: part for it, part in group.target.items() if it in group.members}
        return found
