"""GSSAPI against a real KDC and real Kafka: commands log in by ticket, and say what lacks."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest

from tests.support.installation import Installation
from tests.support.kafka_kerberos import Kdc, KerberosKafka, missing_programs
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until

pytestmark = [pytest.mark.kafka_oracle, pytest.mark.soak, pytest.mark.timeout(580)]


@pytest.fixture
def kafka(kafka_libs: Path, tmp_path: Path) -> Iterator[KerberosKafka]:
    assert kafka_libs.exists()
    if missing := missing_programs():
        pytest.skip(
            f"no KDC here ({', '.join(missing)}): apt-get install krb5-kdc krb5-admin-server"
        )
    pytest.importorskip("gssapi", reason="uv sync --inexact --extra kerberos")
    with Kdc(tmp_path / "kdc") as kdc, KerberosKafka(tmp_path / "kafka", kdc=kdc) as started:
        yield started


def client_properties(kafka: KerberosKafka) -> Path:
    """As Kafka's own tools take it."""
    config = kafka.base_dir / "client.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\n"
        "sasl.kerberos.service.name=kafka\n"
    )
    return config


def _run(
    words: tuple[str, ...], kafka: KerberosKafka, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    config = client_properties(kafka)
    return subprocess.run(
        [sys.executable, "-m", "partiscope", *words, "--bootstrap", kafka.bootstrap],
        env={**os.environ, "PARTISCOPE_CONNECTION__CONFIG_FILE": str(config), **environment},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )


def test_who_has_a_ticket_acts_and_who_has_none_is_told(kafka: KerberosKafka) -> None:
    tickets = kafka.kdc.environment

    def does(*words: str) -> str:
        done = _run(words, kafka, tickets)
        assert done.returncode == 0, (words, done.stderr, kafka.story())
        return done.stdout

    does("topics", "create", "orders", "--partitions", "2", "--replication-factor", "1")
    does("produce", "orders", "--value", "hello", "--count", "20")
    read = does("tail", "orders", "--offset", "earliest", "--json", "--count", "20")
    assert [json.loads(line)["value"] for line in read.splitlines()] == ["hello"] * 20
    described = json.loads(does("topics", "describe", "orders", "--json"))
    assert len(described["partitions"]) == 2

    no_ticket = {**tickets, "KRB5_CLIENT_KTNAME": "/not/there", "KRB5CCNAME": "FILE:/not/there"}
    for words in (("topics", "list"), ("produce", "orders", "--value", "no")):
        refused = _run(words, kafka, no_ticket)
        assert refused.returncode == 4, refused.stderr
        assert "Traceback" not in refused.stderr
        assert "kinit" in refused.stderr


def test_up_watches_and_acts_by_ticket(
    kafka: KerberosKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in kafka.kdc.environment.items():
        monkeypatch.setenv(name, value)
    does = partial(_run, kafka=kafka, environment=kafka.kdc.environment)
    topic = ("orders", "--partitions", "2", "--replication-factor", "1")
    assert does(("topics", "create", *topic)).returncode == 0
    config = str(client_properties(kafka))
    flags = ("--bootstrap", kafka.bootstrap, "--command-config", config)
    with Installation(tmp_path / "up", flags=flags) as up:
        up.wait_ready()
        # By what `up` knows of the connection: nothing else is given.
        words = ("produce", "orders", "--value", "hello", "--count", "20", "--data", str(up.data))
        produced = subprocess.run(
            [sys.executable, "-m", "partiscope", *words],
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        assert produced.returncode == 0, produced.stderr

        def records() -> int:
            now = up.aggregates()
            rows = [] if now is None else now.tables["partitions"].to_pylist()
            return sum(r["high_watermark"] or 0 for r in rows if r["topic"] == "orders")

        wait_until(lambda: records() == 20, "the samples tell of them", story=up.story)
        status, _ = up.status()
        assert status["collector"]["missing_rights"] == []
        assert status["collector"]["failure"] is None
        (broker,) = status["brokers"]
        assert broker["size_bytes"] > 0
