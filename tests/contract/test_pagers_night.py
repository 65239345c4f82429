"""A pager's night on real brokers: a disk fills, a group is stuck, a broker is killed, all mended.

The process that delivers runs on its own, as ``partiscope alerts run``; HTTP and SMTP take its
messages. Logs lie on small file systems; a file beside the log of one broker fills its own.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import Message
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.model.units import bytes_text
from tests.contract.operations_rig import topic_with_data
from tests.support.alert_receivers import MailServer, WebhookServer
from tests.support.cluster import LocalCluster
from tests.support.command_line import CommandLine
from tests.support.metrics_job import MetricsJob
from tests.support.patience import patience_s
from tests.support.settle import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(900)]

PAGE: Final = "http://page.example:8050"
GROUP: Final = "night-shift"
FULL_ID, KILLED_ID, THIRD_ID = 102, 101, 103
DISK_MIB: Final = 400
FULL_SHARE: Final = 0.94
STUCK_AT: Final = 5
RECORDS: Final = 200
TOLD_WITHIN_S: Final = patience_s(60)
"""From a row that matches until the message is sent."""
SETTINGS: Final = """
journal_hold = "unlimited"
[alerts]
page = "{page}"
group_wait = "10s"
resolve_after = "2s"
repeat = "never"
[alerts.receivers.hook]
kind = "webhook"
url = "{hook}"
[alerts.receivers.mail]
kind = "email"
host = "127.0.0.1"
port = {mail}
security = "none"
sender = "partiscope@example.org"
to = ["ops@example.org"]
[[alerts.rules]]
name = "disk"
when = "findings: kind:disk"
[[alerts.rules]]
name = "stuck"
when = "groups: status:STALL"
[[alerts.rules]]
name = "broker"
when = "findings: kind:broker-fenced"
severity = "critical"
[[alerts.rules]]
name = "late"
when = "groups: lag>10"
[[alerts.maintenance]]
name = "patches"
rule = "late"
from = {begin}
until = {end}
timezone = "UTC"
"""


class SmallDisks(LocalCluster):
    """Three brokers; the log of each lies on a small file system of its own, so that the disk of
    the machine does not matter."""

    def prepare_node(self, node_id: int) -> None:
        folder = self.log_dir(node_id)
        folder.mkdir(parents=True)
        mount = ("mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(folder))
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("mounting a small file system needs rights that lack here")

    def stop(self) -> None:
        super().stop()
        for node_id in self.ids:
            umount = ("umount", str(self.log_dir(node_id)))
            subprocess.run(umount, capture_output=True, check=False)

    @property
    def ballast(self) -> Path:
        """The file that takes the room."""
        return self.log_dir(FULL_ID) / "ballast"


@dataclass
class StuckMember:
    """A member that commits one offset again and again, as one that a record blocks."""

    bootstrap: str
    topic: str
    offset: int = STUCK_AT
    _ended: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def working(self) -> Iterator[None]:
        thread = threading.Thread(target=self._work)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _work(self) -> None:
        client = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        client.subscribe([self.topic])
        while not self._ended.is_set():
            client.poll(1.5)
            client.pause(client.assignment())
            at = TopicPartition(self.topic, 0, self.offset)
            with suppress(KafkaException):  # a coordinator that is being elected
                client.commit(offsets=[at], asynchronous=False)
        client.close()


@dataclass
class Night:
    """Everything that is awake."""

    cluster: SmallDisks
    cli: CommandLine
    hook: WebhookServer
    mail: MailServer
    member: StuckMember
    log: Path

    def wait_for(self, rule: str, *statuses: str) -> Any:
        """The alert in the newest document of a rule, once it has told these and no others; the
        mail says the same."""

        def told() -> list[Any]:
            return [it for it in self.hook.taken if it["rule"] == rule]

        wait_until(
            lambda: [it["status"] for it in told()] == [*statuses],
            f"{rule} tells {statuses}",
            timeout_s=120,
            story=self.story,
        )
        document = told()[-1]
        (alert,) = document["alerts"]
        wait_until(
            lambda: any(document["title"] in _subject(it) for it in self.mail.taken),
            f"a mail tells {document['title']}",
            story=self.story,
        )
        at_ms = alert["resolved_ms"] or alert["fired_ms"]
        assert 0 <= document["sent_ms"] - at_ms < TOLD_WITHIN_S * 1000
        return alert

    def mail_about(self, rule: str) -> str:
        """The first mail of a rule."""
        mails = (it for it in self.mail.taken if f": {rule}," in _subject(it))
        text = next(mails).get_payload(decode=True)
        assert isinstance(text, bytes)
        return text.decode()

    def statuses(self) -> dict[str, str]:
        """Status of each alert by its rule; the command ends with 5 while a critical one fires."""
        process = self.cli.start("alerts", "list", "--json")
        out, err = process.communicate(timeout=TOLD_WITHIN_S)
        assert process.returncode in (0, 5), err
        return {it["rule"]: it["status"] for it in json.loads(out)["alerts"]}

    def story(self) -> str:
        return f"{self.log.read_text()}\n{self.statuses()}\n{self.hook.taken}"


def _subject(mail: Message) -> str:
    """On one line, as a long one is folded."""
    return " ".join(str(mail["Subject"]).split())


def _settings(hook: WebhookServer, mail: MailServer) -> str:
    now = datetime.now(UTC)
    begin, end = (f"{now + timedelta(hours=it):%H:%M:%S}" for it in (-1, 3))
    return SETTINGS.format(page=PAGE, hook=hook.url, mail=mail.port, begin=begin, end=end)


@contextmanager
def _delivering(cli: CommandLine, log: Path, at: str) -> Iterator[None]:
    """The process that delivers."""
    flags = ("--bus", at, "--bootstrap", at, "--data", str(cli.folder / "data"))
    with log.open("wb") as said:
        process = subprocess.Popen(
            (sys.executable, "-m", "partiscope", "alerts", "run", *flags),
            cwd=cli.folder, stdout=said, stderr=said,
        )  # fmt: skip
    try:
        yield
    finally:
        process.terminate()
        process.wait(TOLD_WITHIN_S)


@pytest.fixture
def night(tmp_path: Path) -> Iterator[Night]:
    with ExitStack() as stack:
        cluster = stack.enter_context(SmallDisks(tmp_path / "cluster"))
        at = cluster.bootstrap
        hook, mail = stack.enter_context(WebhookServer()), stack.enter_context(MailServer())
        (tmp_path / "partiscope.toml").write_text(_settings(hook, mail))
        member = StuckMember(at, asyncio.run(_topics(at)))
        job = MetricsJob(at, tmp_path / "data")
        stack.callback(job.close)
        job.start()
        job.wait_ready()
        cli = CommandLine(bootstrap=at, bus=at, folder=tmp_path)
        stack.callback(cli.close)
        log = tmp_path / "alerts.log"
        stack.enter_context(_delivering(cli, log, at))
        yield Night(cluster=cluster, cli=cli, hook=hook, mail=mail, member=member, log=log)


async def _topics(at: str) -> str:
    """One topic that only the broker with the small disk holds, and the one that the group reads,
    whose name it answers."""
    async with KafkaAdmin.to(at) as admin:
        await topic_with_data(admin, dict.fromkeys(range(6), (FULL_ID,)), records=3_000)
        everywhere = (KILLED_ID, THIRD_ID, FULL_ID)
        return await topic_with_data(admin, {0: everywhere}, records=RECORDS)


def test_a_night_is_told_and_ends(night: Night) -> None:
    made = night.cli.json("alerts", "silence", "--rule", "stuck", "--for", "1h", "--reason", "x")
    with night.member.working():
        _fill(night.cluster)
        disk = night.wait_for("disk", "firing")
        _check_disk(night, disk)
        wait_until(
            lambda: (
                {"stuck": "silenced (firing)", "late": "silenced (firing)"}.items()
                <= night.statuses().items()
            ),
            "the stuck group is silenced, the late one within the window",
            story=night.story,
        )
        assert {it["rule"] for it in night.hook.taken} == {"disk"}
        night.cli.run("alerts", "unsilence", made["silence"]["id"])
        stuck = night.wait_for("stuck", "firing")
        assert (stuck["subject"], stuck["link"]) == (GROUP, f"{PAGE}/groups/{GROUP}")
        assert "STALL" in stuck["words"]
        night.cluster.kill(KILLED_ID)
        broker = night.wait_for("broker", "firing")
        assert broker["link"] == f"{PAGE}/brokers/{KILLED_ID}"
        assert f"broker {KILLED_ID}" in night.mail_about("broker")
        night.cluster.ballast.unlink()
        night.member.offset = RECORDS
        night.cluster.restart(KILLED_ID)
        for rule in ("disk", "stuck", "broker"):
            assert night.wait_for(rule, "firing", "resolved")["fired_ms"]
    assert {it["rule"] for it in night.hook.taken} == {"disk", "stuck", "broker"}
    wait_until(lambda: not night.statuses(), "nothing is left", timeout_s=120, story=night.story)


def _fill(cluster: SmallDisks) -> None:
    disk = shutil.disk_usage(cluster.log_dir(FULL_ID))
    with cluster.ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, int(disk.total * FULL_SHARE) - disk.used)


def _check_disk(night: Night, alert: Any) -> None:
    """It leads to the plan that relieves this broker, with bytes and time of the planner."""
    link = urlsplit(alert["step_link"])
    query = parse_qs(link.query)
    assert (link.path, query["goal"], query["relieve_brokers"]) == (
        "/plan", ["relieve"], [str(FULL_ID)],
    )  # fmt: skip
    plan = re.search(r"\(plan: (\S+ MiB), ≈ (.+)\)$", alert["next_step"])
    assert plan, alert["next_step"]
    relief = ("--goal", "relieve", "--relieve-brokers", str(FULL_ID))
    planned = night.cli.json("plan", *relief)
    assert bytes_text(planned["alternatives"][0]["moved_bytes"]) == plan[1], planned
    text = night.mail_about("disk")
    assert alert["next_step"] in text
    assert alert["step_link"] in text
    (found,) = [it for it in _status(night.cli)["findings"] if it["kind"] == "disk"]
    assert found["plan_command"].startswith(f"partiscope plan {' '.join(relief)}")


def _status(cli: CommandLine) -> Any:
    """``status --json``, which ends with 5 while something is critical."""
    return json.loads(cli.run("status", "--json", status=5))
