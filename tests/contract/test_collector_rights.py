"""The collector behind TLS, SASL and ACLs: who may log in, what lacks, rights that come later."""

import asyncio
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin._acl import AclOperation
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import LoginError, TlsError, UnreachableError
from control.kafka.records.producer import RecordProducer
from partiscope.connections import ConnectionSettings
from tests.support.certificates import make_certificate
from tests.support.collecting import becomes, collecting
from tests.support.commits import commit
from tests.support.kafka_oracle import run_tool
from tests.support.kafka_secure import (
    ADMIN,
    PASSWORD,
    VIEWER,
    SecureKafka,
    unsecured_token,
)
from tests.support.patience import WAIT_S

pytestmark = [pytest.mark.kafka_oracle, pytest.mark.timeout(240)]

CLUSTER = "kafka-cluster"
ALTER = "ALTER on the cluster"


@pytest.fixture(scope="module")
def secure(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    """One node with two topics and a group; the viewer may describe ``orders``, nothing else."""
    assert kafka_libs.exists()
    overrides = {"offsets.topic.num.partitions": "2"}
    with SecureKafka(tmp_path_factory.mktemp("secure"), overrides=overrides) as cluster:
        admin = cluster.admin()
        admin.list_topics(timeout=WAIT_S)
        topics = [NewTopic("orders", 3, 1), NewTopic("secret", 2, 1)]
        for future in admin.create_topics(topics).values():
            future.result(WAIT_S)
        commit(admin, "billing", {("orders", 0): 0})
        cluster.grant((ResourceType.TOPIC, "orders", AclOperation.DESCRIBE))
        yield cluster


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_each_mechanism_logs_in(secure: SecureKafka, mechanism: str) -> None:
    async with KafkaAdmin.to(secure.connection(sasl_mechanism=mechanism)) as admin:
        assert {topic.name for topic in await admin.topics()} >= {"orders"}


async def test_a_bearer_token_logs_in(secure: SecureKafka, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(unsecured_token(VIEWER))
    bearer: dict[str, Any] = {"sasl_mechanism": "OAUTHBEARER", "oauth_token_file": token}
    async with KafkaAdmin.to(secure.connection(**bearer)) as admin:
        assert {topic.name for topic in await admin.topics()} >= {"orders"}
    token.write_text(unsecured_token(VIEWER, age_s=7_200))
    async with KafkaAdmin.to(secure.connection(**bearer)) as admin:
        with pytest.raises(LoginError, match="token"):
            await admin.describe_cluster()


async def test_a_client_certificate_logs_in(secure: SecureKafka, tmp_path: Path) -> None:
    given = {"security_protocol": "SSL", "ssl_cafile": secure.ca}
    where = secure.certificate_bootstrap
    ours = ConnectionSettings.model_validate({**given, "ssl_certfile": secure.client_certificate})
    async with KafkaAdmin.to(ours.to_kafka(where)) as admin:
        assert {topic.name for topic in await admin.topics()} >= {"orders", "secret"}
    _, strange = make_certificate(tmp_path, "strange")
    for wrong in (None, strange):
        refused = ConnectionSettings.model_validate(
            {**given, "ssl_certfile": wrong, "request_timeout_ms": 3_000}
        )
        async with KafkaAdmin.to(refused.to_kafka(where)) as admin:
            with pytest.raises(UnreachableError) as error:
                await admin.describe_cluster()
        assert "ssl_certfile" in error.value.next_step


async def test_a_client_properties_file_of_kafkas_own_tools_will_do(secure: SecureKafka) -> None:
    config = secure.client_properties(ADMIN)
    settings = ConnectionSettings.model_validate({"config_file": config})
    assert PASSWORD not in repr(settings)
    kafka = settings.to_kafka(secure.bootstrap)
    assert PASSWORD not in repr(kafka)
    async with KafkaAdmin.to(kafka) as admin:
        assert {topic.name for topic in await admin.topics()} >= {"orders", "secret"}
    listed = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "partiscope", "topics", "list", "--bootstrap", secure.bootstrap],
        env={**os.environ, "PARTISCOPE_CONNECTION__CONFIG_FILE": str(config)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert listed.returncode == 0, listed.stderr
    assert "secret" in listed.stdout, "every command logs in as the settings say"


async def test_a_wrong_password_is_named_and_not_tried_again(secure: SecureKafka) -> None:
    settings = secure.connection(password="guess")
    async with KafkaAdmin.to(settings) as admin:
        with pytest.raises(LoginError, match=f"does not accept user {VIEWER}") as refused:
            await admin.describe_cluster()
    assert "guess" not in str(refused.value)
    with pytest.raises(LoginError):
        async with RecordProducer(settings):
            pass


async def test_a_wrong_ca_is_named(secure: SecureKafka, tmp_path: Path) -> None:
    other, _ = make_certificate(tmp_path, "other")
    async with KafkaAdmin.to(secure.connection(ssl_cafile=other)) as admin:
        with pytest.raises(TlsError, match="not trusted") as refused:
            await admin.describe_cluster()
    assert "ssl_cafile" in refused.value.next_step


async def test_plain_text_to_a_tls_listener_says_what_to_set(secure: SecureKafka) -> None:
    settings = KafkaSettings(bootstrap=secure.bootstrap, attempts_max=2, request_timeout_ms=3_000)
    async with KafkaAdmin.to(settings) as admin:
        with pytest.raises(UnreachableError) as refused:
            await admin.describe_cluster()
    assert "security_protocol" in refused.value.next_step


def _obey(secure: SecureKafka, command: str) -> None:
    """Do what a finding says, as whoever may."""
    command = command.replace("ADMIN.properties", str(secure.client_properties(ADMIN)))
    done = run_tool("org.apache.kafka.tools.AclCommand", *shlex.split(command)[1:])
    assert done.returncode == 0, (command, done.stdout, done.stderr)


async def test_rights_that_lack_are_named_and_noticed_when_they_come(secure: SecureKafka) -> None:
    async with collecting(secure.connection()) as (collector, collected):

        def missing() -> set[str]:
            return {right.api for right in collector.report().missing_rights}

        def shown() -> set[str]:
            return {key.topic for key in collected.leaders}

        await becomes(shown, {"orders"})
        blind = {"DescribeLogDirs", "ListPartitionReassignments", "DescribeQuorum"}
        await becomes(lambda: missing() >= {*blind, "DescribeConfigs"}, True)
        assert collector.report().is_partial, "nobody can tell what is hidden"
        assert {row.size_bytes for row in collected.replicas.values()} == {None}
        move = f"{ALTER} and ALTER_CONFIGS on the cluster and ALTER_CONFIGS on topics"
        await becomes(lambda: collector.report().denied_operations.get("reassign"), move)

        (told,) = {r.acl for r in collector.report().missing_rights if r.resource == "cluster"}
        await asyncio.to_thread(_obey, secure, told)
        await becomes(lambda: missing() & blind, set())
        await becomes(lambda: missing() >= {"Metadata", "OffsetFetch"}, True)
        texts = " ".join(right.text for right in collector.report().missing_rights)
        assert "secret" in texts
        assert "billing" in texts
        await becomes(
            lambda: {r.size_bytes for n, r in collected.replicas.items() if n[0].topic == "orders"},
            {0},
        )

        await asyncio.to_thread(
            secure.grant,
            (ResourceType.TOPIC, "*", AclOperation.DESCRIBE),
            (ResourceType.TOPIC, "*", AclOperation.ALTER_CONFIGS),
            (ResourceType.GROUP, "*", AclOperation.DESCRIBE),
            (ResourceType.BROKER, CLUSTER, AclOperation.ALTER),
            (ResourceType.BROKER, CLUSTER, AclOperation.ALTER_CONFIGS),
        )
        await becomes(lambda: shown() >= {"orders", "secret"}, True)
        await becomes(lambda: {group for group, _ in collected.commits}, {"billing"})
        await becomes(lambda: "reassign" in collector.report().denied_operations, False)
        await becomes(missing, set())
        assert not collector.report().is_partial
        assert "produce" in collector.report().denied_operations

        await asyncio.to_thread(secure.revoke, ResourceType.BROKER, CLUSTER, AclOperation.ALTER)
        await asyncio.to_thread(secure.revoke, ResourceType.GROUP, "*", AclOperation.DESCRIBE)
        await becomes(lambda: collector.report().denied_operations.get("reassign"), ALTER)
        await becomes(lambda: "OffsetFetch" in missing(), True)
        assert collector.report().is_partial, "billing is hidden again"
