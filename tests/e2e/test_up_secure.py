"""``up --secure``: all of Partiscope works on a cluster with TLS, logins and rights."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from playwright.sync_api import Browser, expect

from partiscope.bundled.secure_cluster import ADMIN, DEMO, EXECUTOR, METRICS, NODE, SecureCluster
from partiscope.layout import OTHERS
from tests.support.browser import open_page
from tests.support.installation import Installation
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(600)]

TOPIC: Final = "sealed-parcels"
RECORDS: Final = 600
SHORT_S: Final = 5.0
RULE: Final = f"""
[alerts.receivers.file]
kind = "command"
command = ["tee", "-a", "rung.jsonl"]

[[alerts.rules]]
name = "parcels"
when = "topics: {TOPIC}"
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """It runs with the demo load, one alert rule, and a topic on brokers 101 and 102."""
    folder = tmp_path_factory.mktemp("secure")
    (folder / "partiscope.toml").write_text(RULE)
    with Installation(folder / "data", flags=("--secure",), folder=folder) as installation:
        installation.wait_ready()
        new = NewTopic(TOPIC, 2, replica_assignment=[[101, 102], [102, 101]])
        admin = AdminClient(_options(installation, ADMIN))
        admin.create_topics([new])[TOPIC].result(WAIT_S)
        yield installation


def _options(running: Installation, user: str, **others: Any) -> dict[str, Any]:
    """How librdkafka logs in as a user, from the file that was told."""
    files = SecureCluster(running.data)
    text = files.config_of(user).read_text()
    password = re.search(r'password="([^"]+)"', text)
    assert password is not None
    return {
        "bootstrap.servers": running.bootstrap,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(files.ca),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": user,
        "sasl.password": password[1],
        "log_level": 0,
        **others,
    }


def _type(running: Installation, *words: str) -> str:
    """What a command prints that an operator types beside it."""
    done = subprocess.run(
        [sys.executable, "-m", "partiscope", *words, "--data", str(running.data)],
        cwd=running.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_S,
        env={**os.environ},
    )
    assert done.returncode == 0, f"{words}: {done.stderr}\n{running.story()}"
    return done.stdout


def test_figures_of_what_is_produced_reach_the_page(
    running: Installation, browser: Browser
) -> None:
    producer = Producer(_options(running, ADMIN, acks="all"))
    for number in range(RECORDS):
        producer.produce(TOPIC, value=f"record {number}", partition=0)
    assert producer.flush(WAIT_S) == 0
    errors: list[str] = []
    page = open_page(browser, running.page, errors)
    page.goto(f"{running.page}/topics/{TOPIC}")
    expect(page.get_by_text(f"{RECORDS:,}", exact=True).first).to_be_visible()
    page.context.close()
    assert errors == []


def test_commands_log_in_by_themselves(running: Installation) -> None:
    document, _ = running.status()
    assert {broker["status"] for broker in document["brokers"]} == {"alive"}
    one = running.bootstrap.split(",")[2]
    assert TOPIC in _type(running, "topics", "list", "--bootstrap", one)
    _type(running, "produce", TOPIC, "--value", "by-command", "--partition", "1")
    assert "by-command" in _type(running, "tail", TOPIC, "--offset", "earliest", "--exit-at-end")
    assert "fail" not in _type(running, "doctor")


def test_a_reassignment_runs(running: Installation) -> None:
    plan = running.data.parent / "plan.json"
    wanted = [{"topic": TOPIC, "partition": 0, "replicas": [103, 102]}]
    plan.write_text(json.dumps({"version": 1, "partitions": wanted}))
    _type(running, "reassign", str(plan), "--yes")
    admin = AdminClient(_options(running, ADMIN))
    placed = admin.list_topics(TOPIC, timeout=WAIT_S).topics[TOPIC].partitions[0]
    assert sorted(placed.replicas) == [102, 103]
    assert "done" in _type(running, "moves", "list")


def test_an_alert_rings(running: Installation) -> None:
    wait_until(lambda: "parcels" in _type(running, "alerts"), "the rule fires", story=running.story)


@pytest.mark.parametrize(
    "changed",
    [
        {"sasl.password": "guessed"},
        {"sasl.username": "nobody"},
        {"security.protocol": "PLAINTEXT"},
        {"security.protocol": "SASL_PLAINTEXT"},
        {"security.protocol": "SSL"},
        {"ssl.ca.location": "/etc/ssl/certs/ca-certificates.crt"},
        {"sasl.mechanism": "PLAIN"},
    ],
    ids=lambda changed: "-".join(changed.values()).replace("/", "."),
)
def test_strangers_hear_nothing(running: Installation, changed: dict[str, str]) -> None:
    stranger = AdminClient({**_options(running, ADMIN), **changed})
    with pytest.raises(KafkaException):
        stranger.list_topics(timeout=SHORT_S)


@pytest.mark.parametrize(
    ("user", "seen"),
    [
        (METRICS, {"__partiscope_metrics"}),
        (DEMO, {"orders", "clicks", "payments", "audit"}),
    ],
)
def test_a_part_sees_its_own_topics_and_not_others(
    running: Installation, user: str, seen: set[str]
) -> None:
    topics = AdminClient(_options(running, user)).list_topics(timeout=WAIT_S).topics
    assert seen <= topics.keys()
    assert TOPIC not in topics


@pytest.mark.parametrize("user", [METRICS, DEMO, EXECUTOR])
def test_a_part_reads_and_writes_no_topic_of_others(running: Installation, user: str) -> None:
    refused: set[str] = set()
    producer = Producer(_options(running, user))

    def keep(error: KafkaError | None, _: Message) -> None:
        refused.add("" if error is None else error.name())

    producer.produce(TOPIC, value="x", on_delivery=keep)
    assert producer.flush(WAIT_S) == 0
    consumer = Consumer(_options(running, user, **{"group.id": f"sealed-{user}"}))
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    told: set[str] = set()

    def is_refused() -> bool:
        message = consumer.poll(1.0)
        if message is not None:
            error = message.error()
            assert error is not None, message.value()
            told.add(error.name())
        return bool(told)

    wait_until(is_refused, "reading is refused", story=running.story)
    consumer.close()
    assert refused == {"TOPIC_AUTHORIZATION_FAILED"}
    assert told <= {"TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED"}


def test_no_secret_is_told(running: Installation) -> None:
    files = SecureCluster(running.data)
    passwords = [_options(running, user)["sasl.password"] for user in (NODE, ADMIN, METRICS)]
    paths = [*running.data.glob("logs/*"), running.data / "installation.json"]
    told = [*running.lines, *running.children().values(), *(it.read_text() for it in paths)]
    assert [text for text in told for password in passwords if password in text] == []
    assert any(str(files.folder) in line for line in running.lines)
    secret = [*files.folder.iterdir(), *running.data.glob("*.properties")]
    assert [path for path in secret if path.stat().st_mode & OTHERS] == []


def test_it_stays_secure_when_it_starts_again(running: Installation) -> None:
    """The last of the story."""
    before = _options(running, ADMIN)["sasl.password"]
    _type(running, "down")
    running.stop()  # nothing of it is left
    running.flags = ("--no-demo",)
    running.lines.clear()
    running.start()
    running.wait_ready()
    options = _options(running, ADMIN)
    assert options["sasl.password"] == before
    assert TOPIC in AdminClient(options).list_topics(timeout=WAIT_S).topics
    stranger = AdminClient({"bootstrap.servers": running.bootstrap, "log_level": 0})
    with pytest.raises(KafkaException):
        stranger.list_topics(timeout=SHORT_S)
