"""GSSAPI against a real KDC and real Kafka: commands log in by ticket, and say what lacks."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.kafka_kerberos import Kdc, KerberosKafka, missing_programs
from tests.support.node_cluster import ROOT

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


def _run(
    words: tuple[str, ...], kafka: KerberosKafka, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    config = kafka.base_dir / "client.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\n"
        "sasl.kerberos.service.name=kafka\n"
    )
    return subprocess.run(
        [sys.executable, "-m", "partiscope", *words, "--bootstrap", kafka.bootstrap],
        cwd=ROOT,
        env={**os.environ, "PARTISCOPE_CONNECTION__CONFIG_FILE": str(config), **environment},
        capture_output=True,
        text=True,
        timeout=120,
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
