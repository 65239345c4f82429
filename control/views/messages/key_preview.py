"""The line above a produce form: which partition a key will hit, before anything is sent."""

from collections.abc import Mapping
from typing import Final

import pyarrow.compute as pc

from control.messages.keys import is_description
from control.messages.partitioners import KeyRule, partitions_for_key
from control.model.ids import no_partition_words
from control.views.format import plural_text
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.rows import Cell, Tone

NO_TOPIC: Final = "choose a topic to see where keys land"
Leaders = Mapping[int, int]
"""Leader of each partition of a topic; -1: it has none."""


def known_leaders(snapshot: OperatorSnapshot, topic: str) -> Leaders:
    """As the newest figures have them; empty: the topic is not known."""
    partitions = snapshot.cluster.partitions
    found = partitions.filter(pc.equal(partitions["topic"], topic))
    return dict(zip(*(found[name].to_pylist() for name in ("partition", "leader")), strict=True))


def landing(
    snapshot: OperatorSnapshot, leaders: Leaders, values: Mapping[str, str], *, file: str = ""
) -> Cell:
    """Where the record of a form will land, as far as can be said before sending; of the lines of
    ``file`` where one is chosen."""
    topic, key, partition = values["topic"], values["key"], values["partition"]
    if not topic or not leaders:
        return Cell(None, NO_TOPIC)
    if partition and not (partition.isdecimal() and int(partition) in leaders):
        return Cell(None, no_partition_words(topic, partition, len(leaders)), Tone.CRITICAL)
    if partition:
        return Cell(None, f"partition {partition}. Key ignored: explicit partition")
    if file:
        return Cell(None, f"the lines of {file}: each key goes to its partition")
    partitions = plural_text(len(leaders), "partition")
    if not key or key == "none":
        words = f"no key: the client spreads such records over all {partitions}"
        return Cell(None, words)
    if is_description(key):
        words = f"many keys: each goes by its rule to one of {partitions}"
        return Cell(None, words)
    first = key.replace("{n}", "0")
    words = _key_words(snapshot, leaders, first, KeyRule(values["rule"] or KeyRule.MURMUR2))
    return Cell(None, words if first == key else f"first key {first}: {words}")


def _key_words(snapshot: OperatorSnapshot, leaders: Leaders, key: str, rule: KeyRule) -> str:
    """``murmur2 → 10 (leader 102, rack b) · crc32 → 9 · fnv1a → 2``: the chosen rule first, in
    full. A client without a rule for it chooses by itself."""
    answers = partitions_for_key(key.encode(), len(leaders))
    chosen = answers.pop(rule)
    leader = "" if chosen is None else _leader_words(snapshot, leaders.get(chosen, -1))
    others = (f"{other} → {_place(place)}" for other, place in answers.items())
    return " · ".join([f"{rule} → {_place(chosen)}{leader}", *others])


def _place(partition: int | None) -> str:
    return "any" if partition is None else str(partition)


def _leader_words(snapshot: OperatorSnapshot, leader: int) -> str:
    if leader < 0:
        return " (no leader)"
    table = snapshot.broker_table
    racks = dict(zip(table["broker"].to_pylist(), table["rack"].to_pylist(), strict=True))
    rack = racks.get(leader)
    return f" (leader {leader}{f', rack {rack}' if rack else ''})"
