"""Share groups of the newest Kafka: described with the figures of Kafka's own tool."""

import json

import pytest
from typer.testing import CliRunner

from partiscope.cli.resources.groups import app
from tests.contract.operations_rig import unique
from tests.support.kafka_oracle import KafkaCluster, run_tool
from tests.support.settle import wait_until

pytestmark = pytest.mark.kafka_oracle

TOOLS = "org.apache.kafka.tools"
RECORDS = 50


def test_a_share_group_is_described_with_the_lag_that_kafka_tells(
    kafka_today: KafkaCluster,
) -> None:
    topic, group = unique("shared"), unique("sharers")
    _tool(kafka_today, f"{TOOLS}.TopicCommand", *_words("--create --partitions 1 --topic", topic))
    earliest = ("--add-config", "share.auto.offset.reset=earliest")
    named = _words("--alter --entity-type groups --entity-name", group)
    _tool(kafka_today, f"{TOOLS}.ConfigCommand", *named, *earliest)
    records = "".join(f"{number}\n" for number in range(RECORDS))
    _tool(kafka_today, f"{TOOLS}.ConsoleProducer", "--topic", topic, stdin=records)
    read = ("--topic", topic, "--group", group, "--max-messages", "10", "--timeout-ms", "20000")
    _tool(kafka_today, f"{TOOLS}.consumer.ConsoleShareConsumer", *read)

    told = _tool(kafka_today, f"{TOOLS}.consumer.group.ShareGroupCommand", "--describe",
                 "--group", group)  # fmt: skip
    (row,) = [line.split() for line in told.splitlines() if topic in line]
    ours = CliRunner().invoke(app, ["describe", group, "--bootstrap", kafka_today.bootstrap,
                                    "--json"])  # fmt: skip
    assert ours.exit_code == 0, ours.output
    said = json.loads(ours.stdout)
    assert (said["type"], said["state"], said["members"]) == ("share", "Empty", [])
    assert said["group_epoch"] >= 1
    (partition,) = said["partitions"]
    assert [str(partition["start"]), str(partition["lag"])] == row[3:5]
    assert 0 < partition["lag"] <= RECORDS
    assert partition["end"] == RECORDS
    assert (said["delivery_limit"], said["dead_letter_topic"]) == (5, None)
    letters = unique("dlq.letters")
    configs = f"errors.deadletterqueue.topic.name={letters},share.delivery.count.limit=7"
    _tool(kafka_today, f"{TOOLS}.ConfigCommand", *named, "--add-config", configs)
    shown = CliRunner().invoke(app, ["describe", group, "--bootstrap", kafka_today.bootstrap])
    assert "given up after 7" in shown.output
    assert f"{letters} does not exist yet" in shown.output
    assert "at the start offset" in shown.output
    assert "given-up records" in shown.output


def test_given_up_records_are_told_by_the_growth_of_the_dead_letter_topic(
    kafka_today: KafkaCluster,
) -> None:
    """A consumer rejects ten records, then five more: Kafka writes them to the topic."""
    topic, group, letters = unique("shared"), unique("sharers"), unique("dlq.letters")
    create = _words("--create --partitions 1 --topic", topic)
    _tool(kafka_today, f"{TOOLS}.TopicCommand", *create)
    dead = ("--config", "errors.deadletterqueue.group.enable=true")
    _tool(kafka_today, f"{TOOLS}.TopicCommand", *_words("--create --topic", letters), *dead)
    configs = f"errors.deadletterqueue.topic.name={letters},share.auto.offset.reset=earliest"
    named = _words("--alter --entity-type groups --entity-name", group)
    _tool(kafka_today, f"{TOOLS}.ConfigCommand", *named, "--add-config", configs)
    records = "".join(f"{number}\n" for number in range(RECORDS))
    _tool(kafka_today, f"{TOOLS}.ConsoleProducer", "--topic", topic, stdin=records)
    told = 0
    for rejected in (10, 5):
        read = ("--topic", topic, "--group", group, "--max-messages", str(rejected), "--reject")
        _tool(kafka_today, f"{TOOLS}.consumer.ConsoleShareConsumer", *read,
              "--timeout-ms", "20000")  # fmt: skip
        told += rejected
        wanted = (letters, told, told)
        wait_until(
            lambda wanted=wanted: _dead(kafka_today, group) == wanted,  # type: ignore[misc]
            f"{told} dead letters",
            story=lambda: str(_dead(kafka_today, group)),
        )
    shown = CliRunner().invoke(app, ["describe", group, "--bootstrap", kafka_today.bootstrap])
    assert f"{letters}: 15 records, 15 within" in shown.output


def _dead(cluster: KafkaCluster, group: str) -> tuple[str, int, int]:
    at = ("--bootstrap", cluster.bootstrap)
    said = json.loads(CliRunner().invoke(app, ["describe", group, *at, "--json"]).stdout)
    return said["dead_letter_topic"], said["dead_letters"], said["dead_letters_last_hour"]


def _words(text: str, last: str) -> tuple[str, ...]:
    return (*text.split(), last)


def _tool(cluster: KafkaCluster, command: str, *args: str, stdin: str | None = None) -> str:
    server = ("--bootstrap-server", cluster.bootstrap)
    done = run_tool(command, *server, *args, stdin=stdin, version=cluster.version)
    assert done.returncode == 0, done.stderr
    return done.stdout
