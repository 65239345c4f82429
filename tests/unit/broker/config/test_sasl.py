"""SASL properties of a listener: users, this node's own name, and what is refused and why."""

import pytest

from broker.config.errors import ConfigError
from broker.config.sasl import SaslConfig

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
    assert found.own == ("node", "p;q")
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
    ],
)
def test_what_cannot_be_used_is_refused(change: dict[str, str], story: str) -> None:
    with pytest.raises(ConfigError, match=story):
        config(change)


def test_a_listener_of_clients_alone_needs_no_name_of_its_own() -> None:
    assert config({KEY: f'{MODULE} user_a="b";'}, logs_in=False).own is None
