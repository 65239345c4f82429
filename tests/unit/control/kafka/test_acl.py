"""The commands that grant what is missing, whole."""

from control.collector.rights import Gap
from control.kafka.acl import Grants
from control.kafka.connection.settings import KafkaSettings
from control.operations.catalogue import NEEDED_RIGHTS


def test_a_command_is_whole_and_grants_no_more_than_is_missing() -> None:
    plain = Grants.to(KafkaSettings(bootstrap="kafka1:9092"))
    assert plain.commands(Gap.TOPICS.value.rights) == (
        "kafka-acls.sh --bootstrap-server kafka1:9092 --add --allow-principal User:NAME "
        "--operation Describe --topic '*'",
    )
    settings = KafkaSettings(
        bootstrap="kafka1:9093",
        security_protocol="SASL_SSL",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_username="viewer",
    )
    start = (
        "kafka-acls.sh --bootstrap-server kafka1:9093 --command-config ADMIN.properties "
        "--add --allow-principal User:viewer"
    )
    rights = [NEEDED_RIGHTS[name] for name in ("reassign", "elect", "produce")]
    assert Grants.to(settings).commands(*rights) == (
        f"{start} --operation Alter --operation AlterConfigs --cluster",
        f"{start} --operation AlterConfigs --operation Write --topic '*'",
    )


def test_a_principal_that_only_brokers_know_is_not_guessed() -> None:
    by_ticket = KafkaSettings(
        bootstrap="k:1",
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="GSSAPI",
        sasl_username="left over",
    )
    assert Grants.to(by_ticket).principal == "NAME"
