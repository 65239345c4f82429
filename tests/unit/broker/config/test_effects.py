"""Every property that a broker takes has an effect, or documents and a warning say it has none."""

import logging
import re
from pathlib import Path

import pytest

from broker.config.broker_config import BrokerConfig, _typed_fields
from broker.config.errors import ConfigError
from broker.config.without_effect import WITHOUT_EFFECT
from broker.coordinator.config import _NAMES as GROUP_NAMES
from broker.coordinator.config import GroupConfig
from broker.log.config import LogConfig
from broker.protocol.known_configs import broker_configs, topic_configs
from tests.support.phrases import lacking
from tests.unit.broker.config.test_broker_config import LEAST

ROOT = Path(__file__).parents[4]
SOURCES = {path: path.read_text("utf-8") for path in (ROOT / "broker").rglob("*.py")}
AS_WRITTEN = {
    *("node.id", "broker.id", "process.roles", "log.dir", "log.dirs", "broker.rack"),
    *("listeners", "advertised.listeners", "controller.quorum.voters"),
    *("controller.listener.names", "inter.broker.listener.name", "listener.security.protocol.map"),
    *("create.topic.policy.class.name", "alter.config.policy.class.name"),
}
"""Read or refused by `BrokerConfig.from_properties` itself."""
BY_NAME = {
    *("controller.quorum.election.timeout.ms", "controller.quorum.fetch.timeout.ms"),
    *("leader.replication.throttled.rate", "follower.replication.throttled.rate"),
    *("cordoned.log.dirs", "producer.id.expiration.ms", "max.connections"),
}
"""Looked up where they count."""


def _defaults_of_topics() -> set[str]:
    return {name for config in topic_configs().values() for name, _ in config.server_synonyms}


def test_every_known_property_has_an_effect_or_is_said_to_have_none() -> None:
    typed = {entry.metadata["property"] for entry in _typed_fields()}
    with_effect = typed | AS_WRITTEN | BY_NAME | set(GROUP_NAMES.values()) | _defaults_of_topics()
    assert broker_configs().keys() - with_effect - WITHOUT_EFFECT.keys() == set()
    assert with_effect & WITHOUT_EFFECT.keys() == set()


def _is_read(text: str, but: str) -> bool:
    return any(re.search(text, it) for path, it in SOURCES.items() if path.name != but)


def test_a_typed_property_is_read() -> None:
    names = [entry.name for entry in _typed_fields()]
    assert names
    assert [it for it in names if not _is_read(rf"onfig\.{it}\b", "broker_config.py")] == []


def test_a_property_is_looked_up() -> None:
    unread = {it for it in BY_NAME if not _is_read(f'"{re.escape(it)}"', "known_configs.py")}
    assert unread == set()


def test_the_documents_name_what_has_no_effect() -> None:
    text = (ROOT / "docs/reference/compatibility.md").read_text("utf-8")
    table = text.partition("## Properties without effect")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("|")]
    assert set(re.findall(r"`([a-z.]+)`", "".join(rows))) == WITHOUT_EFFECT.keys()


def test_defaults_are_those_that_a_client_is_shown() -> None:
    shown = {name: config.default for name, config in broker_configs().items()}
    for entry in _typed_fields():
        name = entry.metadata["property"]
        if name in shown:
            assert str(entry.default).lower() == shown[name], name
    groups = {GROUP_NAMES[name]: value for name, value in _values(GroupConfig()).items()}
    assert {name: str(value) for name, value in groups.items()} == {n: shown[n] for n in groups}
    defaults = {name: config.default or "" for name, config in topic_configs().items()}
    assert LogConfig.from_properties(defaults) == LogConfig()


def _values(config: GroupConfig) -> dict[str, object]:
    return {name: getattr(config, name) for name in GROUP_NAMES}


def test_what_changes_nothing_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        BrokerConfig.from_properties({**LEAST, "num.io.threads": "4"})
    (told,) = caplog.messages
    assert not lacking(told, "num.io.threads", "no effect", "event loop")


@pytest.mark.parametrize(
    ("change", "story"),
    [
        ({"group.max.size": "many"}, r"group\.max\.size=many: not a number of type INT"),
        ({"group.max.size": "0"}, r"group\.max\.size=0: value must be at least 1"),
        ({"log.retention.hours": "-5"}, r"log\.retention\.hours=-5: value must be at least -1"),
        ({"log.flush.scheduler.interval.ms": "x"}, "not a number of type LONG"),
        ({"controller.quorum.fetch.timeout.ms": "x"}, "not a number of type INT"),
        ({"create.topic.policy.class.name": "org.Policy"}, "this broker loads no classes"),
        ({"broker.id": "7"}, "broker.id=7 differs from node.id=101"),
    ],
)
def test_a_value_that_cannot_be_kept_is_refused(change: dict[str, str], story: str) -> None:
    with pytest.raises(ConfigError, match=story):
        BrokerConfig.from_properties({**LEAST, **change})


def test_kafkas_usual_map_of_protocols_is_taken() -> None:
    usual = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL"
    BrokerConfig.from_properties({**LEAST, "listener.security.protocol.map": usual})


def test_a_node_may_be_named_by_its_older_property() -> None:
    older = {name: value for name, value in LEAST.items() if name != "node.id"}
    assert BrokerConfig.from_properties({**older, "broker.id": "7"}).node_id == 7
