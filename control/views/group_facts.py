"""Words for what a group's coordinator tells: of a share group what becomes of its records, of a
streams group its topology. Page, terminal and command line show the same."""

import time
from typing import Any, Final, NamedTuple

import pyarrow.compute as pc

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.admin.streams_topology import Subtopology
from control.kafka.errors import KafkaPortError
from control.kafka.records.group_details import (
    DeadLetters,
    ShareDetails,
    StreamsDetails,
    TopicLag,
    read_share_details,
    read_streams_details,
)
from control.model.ids import TopicPartition
from control.operations.operation_session import OperationSession
from control.views.format import NA, age_text, count_text, plural_text
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.group_parts import Lags, member_rows
from control.views.tables.rows import Row

FALLING: Final = "Falling lag can mean given-up records as well as acknowledged ones"


class Fact(NamedTuple):
    """One thing that is known."""

    title: str
    text: str


class Told(NamedTuple):
    """Answer of a group's coordinator: facts, and rows of ``MEMBERS``."""

    facts: tuple[Fact, ...]
    members: tuple[Row, ...]


async def read_group(session: OperationSession, snapshot: OperatorSnapshot, group: str) -> Told:
    """Its live members with their lags, and the facts of a share or a streams group.

    :raises KafkaPortError: nobody answers, there is no such group, no right to describe it.
    """
    described = await session.admin.groups.describe_group(group)
    members = member_rows(described, lags_of(snapshot, group))
    now_ms = time.time_ns() // 1_000_000
    facts, _ = await read_facts(session.admin, group, described.group_type, now_ms)
    return Told(facts, members)


def lags_of(snapshot: OperatorSnapshot, group: str) -> Lags:
    """Lag of each of a group's partitions that has one."""
    table = snapshot.commit_table
    own = table.filter(pc.and_(pc.equal(table["group_id"], group), table["has_lag"]))
    rows = own.select(["topic", "partition", "lag"]).to_pylist()
    return {TopicPartition(it["topic"], it["partition"]): it["lag"] for it in rows}


async def read_facts(
    admin: KafkaAdmin, group: str, group_type: str, now_ms: int
) -> tuple[tuple[Fact, ...], dict[str, Any]]:
    """In words, and as a document. Why they are not told is a fact as well."""
    try:
        if group_type == "share":
            share = await read_share_details(admin, group)
            return share_facts(share, now_ms), share_document(share)
        if group_type == "streams":
            streams = await read_streams_details(admin, group)
            return streams_facts(streams), streams_document(streams)
    except KafkaPortError as error:
        return (Fact("not told", f"{error}. {error.next_step}"),), {"not_told": str(error)}
    return (), {}


def share_facts(found: ShareDetails, now_ms: int) -> tuple[Fact, ...]:
    """Age at the start offset, delivery limit, dead letters."""
    limit = found.delivery_limit
    given_up = NA if limit is None else f"a record is given up after {limit} deliveries"
    return (
        Fact("oldest record", _oldest_text(found, now_ms)),
        Fact("delivery limit", given_up),
        Fact("dead letters", _dead_letters_text(found.dead_letters)),
        Fact("mind", FALLING),
    )


def share_document(found: ShareDetails) -> dict[str, Any]:
    """The same for programs; what is not known is null."""
    dead = found.dead_letters
    return {
        "delivery_limit": found.delivery_limit,
        "dead_letter_topic": None if dead is None else dead.topic,
        "dead_letters": None if dead is None else dead.records,
        "dead_letters_last_hour": None if dead is None else dead.last_hour,
    }


def streams_facts(found: StreamsDetails) -> tuple[Fact, ...]:
    """Readiness, and a line for each subtopology."""
    if found.topology is None:
        return (Fact("topology", "not told: no member has joined with one yet"),)
    parts = found.topology.subtopologies
    ready = Fact("topology", f"epoch {found.topology.epoch}, {_readiness(found)}")
    return (ready, *(Fact(f"subtopology {it.id}", _part_text(it, found)) for it in parts))


def streams_document(found: StreamsDetails) -> dict[str, Any]:
    """The same for programs."""
    topology = found.topology
    return {
        "topology_epoch": None if topology is None else topology.epoch,
        "missing_topics": list(found.missing),
        "subtopologies": [
            {
                "id": it.id,
                "read": {name: _lag_document(found.lags.get(name)) for name in it.read},
                "sinks": list(it.sinks),
                "changelogs": list(it.changelogs),
                "restore_lag": found.restore_lags.get(it.id),
                "restoring": len(it.restoring),
                "active": it.active,
                "standby": it.standby,
                "warm_up": it.warm_up,
            }
            for it in (() if topology is None else topology.subtopologies)
        ],
    }


def _lag_document(lag: TopicLag | None) -> dict[str, int] | None:
    if lag is None:
        return None
    return {"partitions": lag.partitions, "lag": lag.lag, "without_commit": lag.unread}


def _oldest_text(found: ShareDetails, now_ms: int) -> str:
    if found.start_ms:
        key, at_ms = min(found.start_ms.items(), key=lambda it: it[1])
        start = found.offsets[key].start or 0
        age = age_text(max(0, now_ms - at_ms))
        return f"written {age}, at the start offset {count_text(start)} of {key}"
    starts = {key: it.start for key, it in found.offsets.items() if it.start is not None}
    waits = any(found.ends.get(key, start) > start for key, start in starts.items())
    return "its age could not be read" if waits else "none waits"


def _dead_letters_text(dead: DeadLetters | None) -> str:
    if dead is None:
        return "no topic: what is given up is lost"
    if dead.records is None:
        return f"{dead.topic} does not exist yet"
    records = plural_text(dead.records, "record")
    return f"{dead.topic}: {records}, {count_text(dead.last_hour)} within the last hour"


def _readiness(found: StreamsDetails) -> str:
    if found.missing:
        return f"not ready: {', '.join(found.missing)} missing"
    if found.state.lower() in ("notready", "not_ready"):
        return "not ready: its coordinator has not taken the topology yet; its log says why"
    return "all topics exist"


def _part_text(part: Subtopology, found: StreamsDetails) -> str:
    read = ", ".join(_read_text(name, found.lags.get(name)) for name in part.read)
    tasks = f"tasks: {part.active} active, {part.standby} standby, {part.warm_up} warming up"
    words = [f"reads {read}", tasks]
    if part.changelogs:
        words.append(f"stores kept in {', '.join(part.changelogs)} ({_restore_text(part, found)})")
    return "; ".join(words)


def _restore_text(part: Subtopology, found: StreamsDetails) -> str:
    """Tasks that run tell nothing, nor do members before Kafka 4.4: so silence is no lag of 0."""
    if not part.restoring:
        return "no task tells that it restores"
    tasks = plural_text(len(part.restoring), "task")
    lag = found.restore_lags.get(part.id)
    told = "not known yet" if lag is None else count_text(lag)
    return f"restore lag {told}, told by {tasks}"


def _read_text(name: str, lag: TopicLag | None) -> str:
    if lag is None:
        return f"{name} (missing)"
    unread = f", {count_text(lag.unread)} without a commit" if lag.unread else ""
    return f"{name} (lag {count_text(lag.lag)}{unread})"
