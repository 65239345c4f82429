"""SASL properties of a listener: users, this node's own name, and what is refused and why."""

import pytest

from broker.config.errors import ConfigError
from broker.config.sasl import BootstrapUser, OwnLogin, SaslConfig, bootstrap_users
from broker.protocol.scram import ScramMechanism

KEY = "listener.name.outside.plain.sasl.jaas.config"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
GIVEN = {
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    KEY: f'{MODULE} username="node" password="p;q" user_node="p;q" '
    'user_alice="a \\"quoted\\" word\\\\" user_bob=plain ;',
}


def config(change: dict[str, str] | None = None, *, logs_in: bool = True) -> SaslConfig:
    mechanism = "sasl.mechanism.inter.broker.protocol" if logs_in else ""
    return SaslConfig.from_properties(GIVEN | (change or {}), "OUTSIDE", logs_in=mechanism)


def test_users_and_the_nodes_own_name_stand_in_the_login_module() -> None:
    found = config()
    assert found.users == {"node": "p;q", "alice": 'a "quoted" word\\', "bob": "plain"}
    assert found.own == OwnLogin(mechanism="PLAIN", name="node", password="p;q")
    assert found.is_right("bob", "plain")
    for name, password in (("bob", "plaim"), ("carol", ""), ("bob", ""), ("", "plain")):
        assert not found.is_right(name, password)


def test_no_password_is_shown() -> None:
    assert "plain" not in repr(config())
    for text in (f"{MODULE} user_a=secret", f'{MODULE} user_a="secret ;', 'user_a="secret";'):
        with pytest.raises(ConfigError, match=KEY) as told:
            config({KEY: text})
        assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("change", "story"),
    [
        ({"sasl.enabled.mechanisms": ""}, "speaks PLAIN"),
        ({"sasl.enabled.mechanisms": "PLAIN,GSSAPI"}, "speaks PLAIN"),
        ({"listener.name.outside.sasl.enabled.mechanisms": "GSSAPI"}, "listener.name.outside.sasl"),
        ({KEY: ""}, "is missing"),
        ({KEY: f'{MODULE} username="a" password="b";'}, "has no users"),
        ({KEY: f'{MODULE} user_a="b";'}, "lacks username"),
        (
            {"sasl.mechanism.inter.broker.protocol": ""},
            "sasl.mechanism.inter.broker.protocol=PLAIN",
        ),
        (
            {"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256"},
            "not among the enabled mechanisms",
        ),
        (
            {
                "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
                "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
            },
            "listener.name.outside.scram-sha-256.sasl.jaas.config is missing",
        ),
    ],
)
def test_what_cannot_be_used_is_refused(change: dict[str, str], story: str) -> None:
    with pytest.raises(ConfigError, match=story):
        config(change)


def test_a_listener_of_clients_alone_needs_no_name_of_its_own() -> None:
    assert config({KEY: f'{MODULE} user_a="b";'}, logs_in=False).own is None


SCRAM = {
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "sasl.mechanism.controller.protocol": "SCRAM-SHA-512",
    "listener.name.outside.scram-sha-512.sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="node" password="p;q";'
    ),
}


def test_a_node_logs_in_to_brokers_by_scram_but_not_to_voters() -> None:
    found = SaslConfig.from_properties(
        SCRAM, "OUTSIDE", logs_in="sasl.mechanism.inter.broker.protocol"
    )
    assert found.own == OwnLogin(mechanism="SCRAM-SHA-512", name="node", password="p;q")
    assert not found.users
    with pytest.raises(ConfigError, match="protocol=PLAIN"):
        SaslConfig.from_properties(SCRAM, "OUTSIDE", logs_in="sasl.mechanism.controller.protocol")


def test_the_first_users_are_those_of_the_file() -> None:
    text = (
        'SCRAM-SHA-256=[name=a,password="b c",iterations=8192]; SCRAM-SHA-512=[name=a,password=d];'
    )
    assert bootstrap_users({"partiscope.bootstrap.scram": text}) == (
        BootstrapUser(mechanism=ScramMechanism.SHA_256, name="a", password="b c", iterations=8_192),
        BootstrapUser(mechanism=ScramMechanism.SHA_512, name="a", password="d"),
    )
    assert bootstrap_users({}) == ()


@pytest.mark.parametrize(
    "entry",
    ["SCRAM-SHA-1=[name=a,password=secret]", "SCRAM-SHA-256=name=a,password=secret",
     "SCRAM-SHA-256=[name=a]", "SCRAM-SHA-256=[name=a,password=secret,iterations=4095]",
     "SCRAM-SHA-256=[name=a,password=secret,iterations=16385]",
     "SCRAM-SHA-256=[name=a,password=secret,iterations=x]", "secret",
     "SCRAM-SHA-256=[name=a,password=secret,other=1]"],
)  # fmt: skip
def test_a_first_user_that_cannot_be_read_is_refused_without_its_password(entry: str) -> None:
    with pytest.raises(ConfigError, match="entry 2") as told:
        bootstrap_users(
            {"partiscope.bootstrap.scram": f"SCRAM-SHA-256=[name=a,password=b];{entry}"}
        )
    assert "secret" not in str(told.value)
