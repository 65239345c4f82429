"""``up`` on SASL_SSL: who may only describe sees everything and is told what lacks; who may do
everything creates, produces, elects and reassigns."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin._acl import AclOperation
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic
from playwright.sync_api import expect

from tests.support.browser import chromium, open_page
from tests.support.commits import commit
from tests.support.installation import Installation
from tests.support.kafka_secure import ADMIN, VIEWER, SecureKafka
from tests.support.patience import WAIT_S, patience_s
from tests.support.settle import wait_until

pytestmark = [
    pytest.mark.kafka_oracle,
    pytest.mark.browser,
    pytest.mark.soak,
    pytest.mark.timeout(600),
]

TOPIC = "orders"
PARTITIONS = 4
NEEDS_DELETE = re.compile(
    "needs DELETE on topics; .*kafka-acls.sh .* "
    f"--allow-principal User:{VIEWER} --operation Delete --topic"
)
DESCRIBES = (
    (ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE),
    (ResourceType.TOPIC, "*", AclOperation.DESCRIBE),
    (ResourceType.TOPIC, "*", AclOperation.DESCRIBE_CONFIGS),
    (ResourceType.GROUP, "*", AclOperation.DESCRIBE),
)


@pytest.fixture(scope="module")
def secure(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    """Three nodes; a topic on two of them, and a group that lags."""
    assert kafka_libs.exists()
    with SecureKafka(tmp_path_factory.mktemp("secure"), brokers=3) as cluster:
        admin = cluster.admin()
        admin.list_topics(timeout=WAIT_S)
        placed = [[101, 102]] * PARTITIONS
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, replica_assignment=placed)])[TOPIC].result(
            WAIT_S
        )
        yield cluster


def _run(installation: Installation, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "partiscope", *words, "--data", str(installation.data)],
        env={name: value for name, value in os.environ.items() if name != "PARTISCOPE_DATA"},
        capture_output=True,
        text=True,
        timeout=patience_s(240),
        check=False,
    )


def _up(secure: SecureKafka, data: Path, user: str) -> Installation:
    config = secure.client_properties(user)
    flags = ("--bootstrap", secure.bootstrap, "--command-config", str(config))
    return Installation(data, flags=flags)


def test_who_may_do_everything_acts_by_the_command_line(
    secure: SecureKafka, tmp_path: Path
) -> None:
    with _up(secure, tmp_path / "up", ADMIN) as installation:
        installation.wait_ready()

        def does(*words: str) -> str:
            done = _run(installation, *words)
            assert done.returncode == 0, (words, done.stdout, done.stderr)
            return done.stdout

        does("topics", "create", "made", "--partitions", "2", "--replication-factor", "3")
        does("produce", "made", "--value", "hello", "--count", "20")
        read = does("tail", "made", "--offset", "earliest", "--json", "--count", "20")
        assert len(read.splitlines()) == 20
        plan = tmp_path / "plan.json"
        moves = [
            {"topic": TOPIC, "partition": number, "replicas": [103, 101]}
            for number in range(PARTITIONS)
        ]
        plan.write_text(json.dumps({"version": 1, "partitions": moves}))
        does("reassign", str(plan), "--throttle", "5MiB", "--yes", "--reason", "a test")
        described = json.loads(does("topics", "describe", TOPIC, "--json"))
        placed = {tuple(row["replicas"]) for row in described["partitions"]}
        assert placed == {(103, 101)}
        assert not any("throttled" in name for name in described["configs"]), "none left behind"
        does("elect")
        described = json.loads(does("topics", "describe", TOPIC, "--json"))
        assert {row["leader"] for row in described["partitions"]} == {103}
        wait_until(
            lambda: installation.status()[0]["collector"]["denied_operations"] == {},
            "nothing is denied",
        )


def test_who_may_only_describe_watches_until_more_is_granted(
    secure: SecureKafka, tmp_path: Path
) -> None:
    secure.grant(*DESCRIBES)
    admin = secure.admin()
    admin.list_topics(timeout=WAIT_S)
    commit(admin, "billing", {(TOPIC, 0): 0})
    errors: list[str] = []
    with _up(secure, tmp_path / "up", VIEWER) as installation, chromium() as browser:
        installation.wait_ready()
        status: dict[str, Any] = {}

        def watches() -> bool:
            status.update(installation.status()[0])
            groups = {row["group"]: row["lag"] for row in status["groups"]}
            denied = set(status["collector"]["denied_operations"])
            return groups.get("billing") == 0 and denied >= {"produce", "reassign", "delete_topic"}

        wait_until(watches, "everything is seen, nothing allowed", story=lambda: str(status))
        assert status["collector"]["missing_rights"] == [], "describing needs no more"
        assert all(row["size_bytes"] is not None for row in status["brokers"])

        refused = _run(installation, "produce", TOPIC, "--value", "no")
        assert refused.returncode != 0
        assert "Traceback" not in refused.stderr
        assert "AUTHORIZATION" in refused.stderr.upper()

        page = open_page(browser, f"{installation.page}/produce/{TOPIC}", errors)
        send, lacking = page.locator("#produce-send"), page.locator("#lacking-produce")
        expect(send).to_be_disabled()
        expect(lacking).to_contain_text("WRITE on topics")
        plan = open_page(browser, f"{installation.page}/plan", errors)
        expect(plan.locator("#plan-button")).to_be_disabled()
        topics = open_page(browser, f"{installation.page}/topics/{TOPIC}", errors)
        delete = topics.locator('[data-form="delete_topic"]')
        expect(delete).to_be_disabled()
        expect(delete.locator("xpath=..")).to_have_attribute("title", NEEDS_DELETE)
        topics.keyboard.press("P")
        expect(topics.locator("#note")).to_contain_text("needs WRITE on topics")
        assert topics.url.endswith(f"/topics/{TOPIC}"), "nothing was opened"

        secure.grant(
            (ResourceType.TOPIC, "*", AclOperation.WRITE),
            (ResourceType.TOPIC, "*", AclOperation.DELETE),
            (ResourceType.TOPIC, "*", AclOperation.ALTER_CONFIGS),
            (ResourceType.BROKER, "kafka-cluster", AclOperation.ALTER),
            (ResourceType.BROKER, "kafka-cluster", AclOperation.ALTER_CONFIGS),
        )
        expect(send).to_be_enabled()
        expect(lacking).to_have_text("")
        expect(plan.locator("#plan-button")).to_be_enabled()
        expect(delete).to_be_enabled()
        send.click()
        expect(page.locator("#produce-result")).to_contain_text(f"{TOPIC}-")
        assert _run(installation, "produce", TOPIC, "--value", "yes").returncode == 0

        move = _reverses_a_partition(installation, tmp_path / "plan.json")
        moved = open_page(browser, f"{installation.page}/moves/{move}", errors)
        rollback = moved.locator("#move-rollback")
        expect(rollback).to_be_enabled()
        secure.revoke(ResourceType.BROKER, "kafka-cluster", AclOperation.ALTER)
        expect(rollback).to_be_disabled()
        expect(moved.locator("#move-body .lacking")).to_contain_text("ALTER on the cluster")
        moved.keyboard.press("u")
        moved.wait_for_timeout(500)
        expect(moved.locator("#move-question")).to_be_empty()
    assert errors == []


def _reverses_a_partition(installation: Installation, plan: Path) -> str:
    """Gives it another preferred leader; answers the id of the move that has ended."""
    described = json.loads(_run(installation, "topics", "describe", TOPIC, "--json").stdout)
    replicas = described["partitions"][0]["replicas"]
    wanted = {"topic": TOPIC, "partition": 0, "replicas": replicas[::-1]}
    plan.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
    done = _run(installation, "reassign", str(plan), "--yes", "--json")
    assert done.returncode == 0, (done.stdout, done.stderr)
    moves = json.loads(_run(installation, "moves", "--json").stdout)
    return str(moves["moves"][0]["id"])
