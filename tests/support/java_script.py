"""A day's work with Kafka's own command-line tools, as a transcript that two clusters can share.

Each step runs one tool and keeps what it printed, without what must differ between two clusters
(ids drawn at random, ports, members' names, times). Steps are named, so that a test can say which
one differs.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.kafka_oracle import run_tool
from tests.support.settle import wait_until
from tests.support.wire import wait_everywhere, wait_for_topic

TOPICS: Final = "org.apache.kafka.tools.TopicCommand"
PRODUCER: Final = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER: Final = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS: Final = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
OFFSETS: Final = "org.apache.kafka.tools.GetOffsetShell"
CONFIGS: Final = "kafka.admin.ConfigCommand"
REASSIGN: Final = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
LOG_DIRS: Final = "org.apache.kafka.tools.LogDirsCommand"

TOPIC: Final = "ledger"
GROUP: Final = "auditors"
LINES: Final = "".join(f"account-{n % 7}:entry {n}\n" for n in range(60))
MOVE: Final = {
    "version": 1,
    "partitions": [
        {"topic": TOPIC, "partition": 0, "replicas": [103, 101], "log_dirs": ["any", "any"]}
    ],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one tool did."""

    name: str
    status: int
    lines: tuple[str, ...]


def java_transcript(bootstrap: str, folder: Path) -> Iterator[Step]:
    """Run the whole script against a fresh cluster of brokers 101, 102 and 103."""
    server = ("--bootstrap-server", bootstrap)
    yield from _topics(server)
    yield from _records(server)
    yield from _groups(server)
    yield from _configs(server)
    yield from _reassignment(server, folder)
    gone = run_tool(TOPICS, *server, "--delete", "--topic", TOPIC)
    yield _step("delete the topic", gone)
    wait_everywhere(bootstrap, TOPIC, lambda topic: topic is None, "is gone")
    yield _step(
        "list topics when it is gone", run_tool(TOPICS, *server, "--list"), only=f"^{TOPIC}$"
    )


def _topics(server: tuple[str, str]) -> Iterator[Step]:
    assignment = ("--replica-assignment", "101:102,102:103")
    create = run_tool(TOPICS, *server, "--create", "--topic", TOPIC, *assignment)
    yield _step("create a topic", create)
    wait_for_topic(server[1], TOPIC, 2)
    again = run_tool(TOPICS, *server, "--create", "--topic", TOPIC)
    yield _step("create it again", again)
    bad = ("--create", "--topic", "too-wide", "--replication-factor", "9")
    yield _step("ask for too many replicas", run_tool(TOPICS, *server, *bad))
    more = ("--alter", "--topic", TOPIC, "--partitions", "3")
    yield _step("add a partition", run_tool(TOPICS, *server, *more))
    wait_for_topic(server[1], TOPIC, 3)
    shown = run_tool(TOPICS, *server, "--describe", "--topic", TOPIC)
    yield _step("describe the topic", shown, only=r"PartitionCount|Partition: [01]\t")


def _records(server: tuple[str, str]) -> Iterator[Step]:
    keyed = ("--property", "parse.key=true", "--property", "key.separator=:")
    sent = run_tool(PRODUCER, *server, "--topic", TOPIC, *keyed, stdin=LINES)
    yield _step("produce keyed lines", sent)
    ends = run_tool(OFFSETS, *server, "--topic", TOPIC)
    yield _step("end offsets: keys lie where murmur2 says", ends)
    show = (
        "--property",
        "print.key=true",
        "--property",
        "print.partition=true",
    )
    read = run_tool(
        CONSUMER,
        *(*server, "--topic", TOPIC, "--group", GROUP, "--from-beginning", *show),
        *("--max-messages", "60", "--timeout-ms", "20000"),
    )
    yield _step("consume them in a group", read, in_order=False)


def _groups(server: tuple[str, str]) -> Iterator[Step]:
    described = run_tool(GROUPS, *server, "--describe", "--group", GROUP)
    yield _step("describe the group", described, in_order=False)
    reset = ("--reset-offsets", "--group", GROUP, "--topic", TOPIC, "--shift-by", "-5")
    yield _step("reset its offsets", run_tool(GROUPS, *server, *reset, "--execute"), in_order=False)
    yield _step("delete the group", run_tool(GROUPS, *server, "--delete", "--group", GROUP))


def _configs(server: tuple[str, str]) -> Iterator[Step]:
    entity = ("--entity-type", "topics", "--entity-name", TOPIC)
    added = ("--alter", "--add-config", "retention.ms=86400000,max.message.bytes=2000000")
    yield _step("configure the topic", run_tool(CONFIGS, *server, *entity, *added))
    yield _step("describe its configs", _describe_until_known(server, entity))
    bad = run_tool(CONFIGS, *server, *entity, "--alter", "--add-config", "retention.mss=1")
    yield _step("an unknown config", bad, only="InvalidConfigurationException|Unknown topic config")


def _reassignment(server: tuple[str, str], folder: Path) -> Iterator[Step]:
    plan = folder / "move.json"
    plan.write_text(json.dumps(MOVE))
    file = ("--reassignment-json-file", str(plan))
    run = run_tool(REASSIGN, *server, *file, "--execute", "--throttle", "50000000")
    yield _step("execute a reassignment", run)
    wait_everywhere(server[1], TOPIC, _has_moved, "has moved")
    yield _step("verify that it is done", run_tool(REASSIGN, *server, *file, "--verify"))
    shown = run_tool(TOPICS, *server, "--describe", "--topic", TOPIC)
    yield _step("describe the moved partition", shown, only="Partition: 0\t")
    sizes = run_tool(LOG_DIRS, *server, "--describe", "--topic-list", TOPIC)
    yield Step(name="log dirs of the topic", status=sizes.returncode, lines=_homes(sizes.stdout))


def _describe_until_known(
    server: tuple[str, str], entity: tuple[str, ...]
) -> subprocess.CompletedProcess[str]:
    """The tool asks any broker, and one of them is the last to hear of a change."""
    tries: list[subprocess.CompletedProcess[str]] = []

    def is_known() -> bool:
        tries.append(run_tool(CONFIGS, *server, *entity, "--describe"))
        return "max.message.bytes=2000000" in tries[-1].stdout

    wait_until(is_known, "the new configs are shown")
    return tries[-1]


def _has_moved(topic: Any) -> bool:
    (partition,) = (p for p in topic.partitions if p.partition_index == 0)
    isr = sorted(partition.isr_nodes)
    return (list(partition.replica_nodes), isr) == ([103, 101], [101, 103])


def _homes(printed: str) -> tuple[str, ...]:
    """Which broker holds which partition with how many bytes, from the tool's JSON line."""
    document = json.loads(next(line for line in printed.splitlines() if line.startswith("{")))
    return tuple(
        f"{broker['broker']} {replica['partition']} lag {replica['offsetLag']}"
        for broker in sorted(document["brokers"], key=lambda item: int(item["broker"]))
        for directory in broker["logDirs"]
        for replica in sorted(directory["partitions"], key=lambda item: str(item["partition"]))
        if not replica["partition"].endswith("-2")  # where an added partition lands is drawn
    )


_NOISE: Final = (
    (re.compile(r"TopicId: \S+"), "TopicId: ID"),
    (re.compile(r"127\.0\.0\.1:\d+"), "HOST"),
    (re.compile(r"\[\d{4}-\d\d-\d\d [\d:,]+\]"), "[TIME]"),
    (re.compile(r"console-consumer-[0-9a-f-]+"), "MEMBER"),
    (re.compile(r"CreateTime:\d+"), "CreateTime"),
    (re.compile(r"Elr: .*$"), ""),
    # Kafka 4.1 turns on eligible leader replicas, which makes this default explicit.
    (re.compile(r"Configs: min\.insync\.replicas=1$"), "Configs:"),
    (re.compile(r"[ \t]+"), " "),
)
_NOT_COMPARED: Final = re.compile(r"WARN|SLF4J|log4j|^\s+at |^WARNING|deprecated|\] ERROR ")


def _step(
    name: str,
    done: subprocess.CompletedProcess[str],
    *,
    only: str = ".",
    in_order: bool = True,
) -> Step:
    raw = [line for line in (done.stdout + done.stderr).splitlines() if re.search(only, line)]
    lines = [_normal(line) for line in raw if not _NOT_COMPARED.search(line)]
    kept = [line for line in lines if line]
    return Step(name=name, status=done.returncode, lines=tuple(kept if in_order else sorted(kept)))


def _normal(line: str) -> str:
    for pattern, replacement in _NOISE:
        line = pattern.sub(replacement, line)
    return line.strip()
