"""What configs mean: units, what holds without the own setting, what differs."""

from broker.protocol.known_configs import ConfigType
from control.kafka.ports import ConfigEntry, ConfigResource, ConfigScope, ConfigSynonym
from control.operations.catalogue.configs import HIDDEN
from control.views.tables.configs import (
    config_rows,
    differing,
    document,
    facts,
    plain_text,
    value_otherwise,
)

TOPIC = ConfigResource(scope=ConfigScope.TOPIC, name="orders")
BROKER = ConfigResource(scope=ConfigScope.BROKER, name="101")


def entry(name: str, value: str | None, *synonyms: ConfigSynonym, source: int = 5) -> ConfigEntry:
    return ConfigEntry(
        name=name,
        value=value,
        is_default=source == 5,
        is_read_only=False,
        is_sensitive=value is None,
        source=source,
        type=ConfigType.LONG,
        documentation="Bounds <code>time</code> &amp; space.",
        synonyms=synonyms,
    )


def test_a_comparison_has_what_only_the_other_one_has() -> None:
    mine = [entry("a.same", "1"), entry("b.mine", "2", source=2)]
    others = [entry("a.same", "1"), entry("c.theirs", "3", source=2), entry("d.secret", None)]
    rows = config_rows(BROKER, mine, other=others)
    told = {row.key: (row.value.text, row.other.text, row.source.text) for row in rows}
    assert [row.key for row in rows] == ["b.mine", "c.theirs", "d.secret", "a.same"]
    assert told["c.theirs"] == ("–", "3", "–")
    assert told["b.mine"] == ("2", "–", "broker")
    assert told["d.secret"] == ("–", HIDDEN, "–")
    assert [row.key for row in config_rows(BROKER, mine)] == ["b.mine", "a.same"]


def test_without_the_own_setting_the_brokers_holds_in_the_topics_unit() -> None:
    own = ConfigSynonym("retention.ms", "1000", 1)
    hours = ConfigSynonym("log.retention.hours", "48", 4)
    assert value_otherwise(TOPIC.scope, entry("retention.ms", "1000", own, hours, source=1)) == str(
        48 * 3_600_000
    )
    forever = ConfigSynonym("log.retention.hours", "-1", 4)
    unlimited = entry("retention.ms", "1000", own, forever, source=1)
    assert value_otherwise(TOPIC.scope, unlimited) == "-1"
    alone = entry("retention.ms", "1000", own, source=1)
    assert value_otherwise(TOPIC.scope, alone) == "604800000", "Kafka's default, where none is told"
    assert value_otherwise(TOPIC.scope, entry("retention.ms", "5", source=4)) == "5"
    shared = entry(
        "log.cleaner.threads",
        "2",
        ConfigSynonym("log.cleaner.threads", "2", 2),
        ConfigSynonym("log.cleaner.threads", "3", 3),
        ConfigSynonym("log.cleaner.threads", "1", 5),
        source=2,
    )
    assert value_otherwise(BROKER.scope, shared) == "3", "what is set for all brokers"


def test_what_is_set_comes_first_and_what_differs_before_it() -> None:
    entries = [entry("a", "1"), entry("b", "2", source=1), entry("c", "3")]
    assert [row.key for row in config_rows(TOPIC, entries)] == ["b", "a", "c"]
    other = [entry("a", "1"), entry("b", "2"), entry("c", "9")]
    rows = config_rows(TOPIC, entries, other=other)
    assert [row.key for row in rows] == ["c", "b", "a"]
    assert rows[0].other.text == "9"
    missing, *_ = config_rows(TOPIC, [entry("0", "1")], other=other)
    assert missing.other.text == "–", "of another version of Kafka"


def test_a_config_that_only_one_of_two_has_differs() -> None:
    """Brokers of two versions."""
    mine = [entry("a", "1"), entry("new", "2"), entry("c", "3")]
    others = [entry("a", "1"), entry("c", "4"), entry("old", "5")]
    assert [name for name, *_ in differing(mine, others)] == ["c", "new", "old"]


def test_the_filter_looks_at_names_and_texts() -> None:
    entries = [entry("retention.ms", "1"), entry("segment.bytes", "2")]
    assert [row.key for row in config_rows(TOPIC, entries, filter="SPACE")] == [
        "retention.ms",
        "segment.bytes",
    ]
    assert [row.key for row in config_rows(TOPIC, entries, filter=" segm")] == ["segment.bytes"]


def test_a_password_is_never_shown() -> None:
    secret = entry("ssl.key.password", None, ConfigSynonym("ssl.key.password", None, 2), source=2)
    (row,) = config_rows(BROKER, [secret])
    assert row.value.text == HIDDEN
    assert document(BROKER.scope, secret)["value"] is None


def test_what_kafka_says_of_a_config_is_told_without_html() -> None:
    assert plain_text("Bounds <code>time</code> &amp; space.") == "Bounds time & space."
    told = dict(facts(TOPIC.scope, entry("retention.ms", "1")))
    assert told["what it does"] == "Bounds time & space."
    assert told["valid in Kafka 4.1"] == "[-1,...]"
    assert told["type"] == "long"
