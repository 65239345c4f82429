"""A node's configuration: Kafka's names and defaults, and errors that say what to write."""

import logging
from pathlib import Path

import pytest

from broker.config.broker_config import BrokerConfig
from broker.config.errors import ConfigError
from broker.config.properties import parse_properties
from broker.metadata.records import BrokerEndpoint
from tests.support.phrases import lacking

ROOT = Path(__file__).resolve().parents[4]
LEAST = {
    "node.id": "101",
    "cluster.id": "abc",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:19092",
    "controller.quorum.voters": "101@127.0.0.1:19092",
    "log.dirs": "/data",
}


def test_defaults_are_kafkas() -> None:
    config = BrokerConfig.from_properties(LEAST)
    (client,) = config.listeners.clients
    assert config.listeners.advertised == (client,)
    assert client == BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=9092)
    assert config.num_partitions == 1
    assert config.replica_lag_time_max_ms == 30_000
    assert config.socket_request_max_bytes == 104_857_600
    assert config.auto_create_topics_enable
    assert config.rack is None


def test_values_are_typed_and_unknown_names_are_warned_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = {
        **LEAST,
        "num.partitions": " 4",
        "auto.create.topics.enable": "False",
        "log.segment.bytes": "1024",
        "num.partitons": "5",
    }
    with caplog.at_level(logging.WARNING):
        config = BrokerConfig.from_properties(given)
    assert config.num_partitions == 4
    assert not config.auto_create_topics_enable
    assert config.properties["log.segment.bytes"] == "1024"
    (told,) = caplog.messages
    assert not lacking(told, "num.partitons", "not known")


@pytest.mark.parametrize(
    ("change", "story"),
    [
        ({"node.id": ""}, "node.id is missing"),
        ({"node.id": "x"}, "node.id=x is not a whole number"),
        ({"num.partitions": "0"}, "num.partitions=0 is too small; the least is 1"),
        ({"auto.create.topics.enable": "yes"}, "neither true nor false"),
        ({"listeners": "PLAINTEXT://127.0.0.1"}, "is not NAME://HOST:PORT"),
        ({"listeners": "PLAINTEXT://0.0.0.0:9092"}, "write advertised.listeners"),
        ({"process.roles": "controller"}, "process.roles=controller: every node is a broker"),
        ({"process.roles": "broker,voter"}, "write broker,controller for one that votes"),
        ({"log.dirs": "/a,/b"}, "name just one"),
    ],
)
def test_bad_values_say_what_and_what_next(change: dict[str, str], story: str) -> None:
    with pytest.raises(ConfigError, match=story):
        BrokerConfig.from_properties({**LEAST, **change})


def test_controller_port_follows_the_client_port() -> None:
    for port, controller in ((9092, 19092), (60_000, 50_000)):
        given = {**LEAST, "listeners": f"PLAINTEXT://127.0.0.1:{port}"}
        config = BrokerConfig.from_properties(given)
        assert config.listeners.controller is not None
        assert config.listeners.controller.port == controller


def test_a_broker_alone_has_no_listener_for_controllers() -> None:
    assert (
        BrokerConfig.from_properties({**LEAST, "process.roles": "broker"}).listeners.controller
        is None
    )


@pytest.mark.parametrize(
    "address", ["a..b:9092", "h:²", "h:" + "9" * 5_000, "h:70000", f"{'x' * 64}:9092", "[a..b]:1"]
)
def test_a_listener_that_no_machine_has_is_refused(address: str) -> None:
    for key in ("listeners", "advertised.listeners"):
        with pytest.raises(ConfigError, match=key):
            BrokerConfig.from_properties({**LEAST, key: f"PLAINTEXT://{address}"})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read --config .*none\.properties.*no such file"):
        BrokerConfig.from_file(str(tmp_path / "none.properties"))


def test_properties_syntax() -> None:
    text = """
# a comment
! another
plain=value
  spaced : value with blanks
blank separated
long=one,\\
     two
escaped\\:key=tab\\there
empty=
"""
    assert parse_properties(text) == {
        "plain": "value",
        "spaced": "value with blanks",
        "blank": "separated",
        "long": "one,two",
        "escaped:key": "tab\there",
        "empty": "",
    }


def test_the_documented_properties_are_taken(caplog: pytest.LogCaptureFixture) -> None:
    page = (ROOT / "docs" / "operate" / "security.md").read_text()
    block = page.partition("```properties\n")[2].partition("```")[0]
    with caplog.at_level(logging.WARNING):
        config = BrokerConfig.from_properties({**LEAST, **parse_properties(block)})
    assert [it.name for it in config.listeners.clients] == ["INSIDE", "OUTSIDE"]
    assert config.tls.keys() == config.sasl.keys() == {"OUTSIDE"}
    assert not caplog.messages
