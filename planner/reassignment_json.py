"""Kafka's reassignment JSON, in and out (ReassignPartitionsCommand).

``{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[5,6],"log_dirs":[…]}]}``:
``version`` may be absent and is 1; the first replica is the preferred leader; ``log_dirs`` may be
absent, and holds one ``"any"`` per replica: brokers choose the directory, and a path, which Kafka's
tool takes as well, is refused rather than passed over.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from control.model.ids import TOPIC_NAME, TopicPartition

VERSION: Final = 1
GENERATED: Final = "Proposed partition reassignment configuration\n"
"""Kafka's tool prints it above the plan that it generated."""
ANY_LOG_DIR: Final = "any"
SHOWN_MAX: Final = 80
"""Letters of a value that a message quotes."""


FAULTS_MAX: Final = 20
"""So many faults of a file are named, the others counted."""
ID_MAX: Final = 2**31 - 1
"""Of a broker or a partition: Kafka's ids have 32 bits."""
DIGITS_MAX: Final = 40
"""Of a number: ids, counts and sizes in bytes have fewer."""


class ReassignmentJsonError(ValueError):
    """A reassignment file that Kafka's tool would refuse; the message names all wrong entries.
    `sound`: targets of the others."""

    def __init__(
        self, message: str, sound: Mapping[TopicPartition, tuple[int, ...]] | None = None
    ) -> None:
        super().__init__(message)
        self.sound = sound or {}


def parse_reassignment(text: str | bytes) -> dict[TopicPartition, tuple[int, ...]]:
    """Target replicas per partition. Of what Kafka's tool prints with ``--generate``, the plan.

    :raises ReassignmentJsonError: not JSON, or an entry that Kafka's tool refuses.
    """
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    _, _, generated = text.partition(GENERATED)
    text = generated or text
    return parse_reassignment_document(decoded_json(text))


def decoded_json(text: str) -> object:
    """A document of a file that people and tools write.

    :raises ReassignmentJsonError: not JSON, a key twice in an object, or a number beyond every id.
    """
    try:
        return json.loads(text, object_pairs_hook=_each_once, parse_int=_whole)
    except ReassignmentJsonError:
        raise
    except RecursionError as error:
        raise ReassignmentJsonError("not JSON that can be read: nested too deep") from error
    except ValueError as error:
        raise ReassignmentJsonError(f"not JSON: {error}") from error


def _whole(digits: str) -> int:
    if len(digits) > DIGITS_MAX:
        raise ReassignmentJsonError(f"{digits[:DIGITS_MAX]}… has {len(digits):,} digits")
    return int(digits)


def parse_reassignment_document(document: object) -> dict[TopicPartition, tuple[int, ...]]:
    """parse_reassignment for a document that is decoded already."""
    if not isinstance(document, Mapping):
        raise ReassignmentJsonError("the document must be an object")
    if document.get("version", VERSION) != VERSION:
        raise ReassignmentJsonError("Not supported version field value")
    entries = document.get("partitions")
    if not isinstance(entries, list):
        raise ReassignmentJsonError("partitions must be a list")
    if not entries:
        raise ReassignmentJsonError("it moves nothing: its list of partitions is empty")
    targets: dict[TopicPartition, tuple[int, ...]] = {}
    wrong: list[str] = []
    for i, entry in enumerate(entries):
        where = f"partitions[{i}]"
        if faults := list(_faults(entry, where)):
            wrong += faults
            continue
        key = TopicPartition(entry["topic"], int(entry["partition"]))
        if key in targets:
            wrong.append(f"{where}: {key} is listed twice")
        targets[key] = tuple(entry["replicas"])
    if wrong:
        more = f"; and {len(wrong) - FAULTS_MAX:,} more" if len(wrong) > FAULTS_MAX else ""
        raise ReassignmentJsonError("; ".join(wrong[:FAULTS_MAX]) + more, targets)
    return targets


def reassignment_document(targets: Mapping[TopicPartition, Sequence[int]]) -> dict[str, Any]:
    """As Kafka's tool writes it: by topic then partition, one log dir per replica."""
    partitions = [
        {
            "topic": key.topic,
            "partition": key.partition,
            "replicas": list(replicas),
            "log_dirs": [ANY_LOG_DIR] * len(replicas),
        }
        for key, replicas in sorted(targets.items())
    ]
    return {"version": VERSION, "partitions": partitions}


def format_reassignment(targets: Mapping[TopicPartition, Sequence[int]]) -> str:
    """The text of a reassignment file, without blanks, as Kafka's tool prints it."""
    return json.dumps(reassignment_document(targets), separators=(",", ":"))


def _faults(entry: object, where: str) -> Iterator[str]:
    """All that is wrong with an entry."""
    if not isinstance(entry, Mapping):
        yield f"{where} must be an object"
        return
    topic = entry.get("topic")
    if not isinstance(topic, str) or not TOPIC_NAME.fullmatch(topic):
        yield f"{where}.topic must be a topic's name, not {quoted(topic)}"
    if not _is_id(entry.get("partition")):
        yield f"{where}.partition must be a whole number from 0 to {ID_MAX}"
    replicas = entry.get("replicas")
    if not isinstance(replicas, list) or not all(_is_id(r) for r in replicas):
        yield f"{where}.replicas must be a list of broker ids (0 to {ID_MAX})"
        return
    if not replicas:
        yield f"{where}.replicas is empty"
    if len(set(replicas)) < len(replicas):
        yield f"{where}.replicas {quoted(replicas)} names a broker twice"
    yield from _log_dir_faults(entry.get("log_dirs"), len(replicas), where)


def _log_dir_faults(log_dirs: object, replicas: int, where: str) -> Iterator[str]:
    if log_dirs is None:
        return
    if not isinstance(log_dirs, list) or len(log_dirs) != replicas:
        yield f"{where}.log_dirs must name one directory per replica"
        return
    for path in log_dirs:
        if isinstance(path, str) and path.startswith("/"):
            yield (
                f"{where}.log_dirs: brokers choose the directory here, {quoted(path)} would be "
                f'passed over; write "{ANY_LOG_DIR}", or run this file by '
                "kafka-reassign-partitions"
            )
        elif path != ANY_LOG_DIR:
            yield f'{where}.log_dirs: {quoted(path)} is neither "any" nor a path'


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, none of whose keys is given twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise ReassignmentJsonError(
            f"{quoted(twice)} is given twice in one object: {quoted(found)}"
        )
    return found


def quoted(value: object) -> str:
    """A part of a file as a message names it: its first letters."""
    text = repr(value[:SHOWN_MAX] if isinstance(value, str) else value)
    return text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 1] + "…"


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= ID_MAX
