"""Configs of a topic or broker, with what they mean, for the page, the terminal and the command
line.

Values, types and texts are those that the cluster tells (DescribeConfigs, KIP-226 and KIP-569).
Which values are valid is not told by any Kafka: it is known of Kafka 4.1 and shown as that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import unescape
from re import sub
from typing import Final, NamedTuple

from broker.protocol.known_configs import ConfigType, KnownConfig, broker_configs, topic_configs
from control.kafka.ports import ConfigEntry, ConfigResource, ConfigScope
from control.model.config_values import value_words
from control.operations.catalogue.configs import HIDDEN
from control.views.format import NONE
from control.views.paths import ViewPath
from control.views.tables import units
from control.views.tables.column import Column, Table, column, name_column, worded
from control.views.tables.rows import Cell, Row, Tone

BROKER: Final = "broker:"
TOPIC: Final = "topic:"
"""Before a broker's id, where a topic's name could stand; before a topic's name it may be left
out."""
ABSENT: Final = 0
"""Source of a config that only the other one of a comparison has."""
SOURCES: Final = {
    ABSENT: NONE, 1: "topic", 2: "broker", 3: "all brokers", 4: "file", 5: "default"
}  # fmt: skip
"""Where a value comes from, by Kafka's number."""
_OWN: Final = {ConfigScope.TOPIC: frozenset({1}), ConfigScope.BROKER: frozenset({2, 3})}
"""Sources that a change of the topic or broker itself sets, and removes."""
_KNOWN: Final = {ConfigScope.TOPIC: topic_configs, ConfigScope.BROKER: broker_configs}


class _Line(NamedTuple):
    resource: ConfigResource
    entry: ConfigEntry
    beside: Mapping[str, ConfigEntry] | None
    """Configs of what it is compared with, by name."""

    @property
    def scope(self) -> ConfigScope:
        return self.resource.scope


def _value_cell(line: _Line) -> Cell:
    tone = Tone.NOTICE if is_changed(line.scope, line.entry) else Tone.PLAIN
    return Cell(line.entry.value, value_text(line.entry), tone)


def _default_cell(line: _Line) -> Cell:
    entry, otherwise = line.entry, value_otherwise(line.scope, line.entry)
    words = "" if otherwise == entry.value else _told(entry.name, otherwise)
    return Cell(otherwise, words, Tone.MUTED)


def _other_cell(line: _Line) -> Cell:
    than = (line.beside or {}).get(line.entry.name)
    value, words = (None, NONE) if than is None else (than.value, value_text(than))
    return Cell(value, words, Tone.NOTICE if _differs(line.entry, line.beside) else Tone.MUTED)


CONFIGS: Final = Table(
    name="configs",
    about="A row per config of a topic or broker, first what is set there",
    key=lambda line: line.entry.name,
    columns=(
        name_column("config", "config", rank=1, cell=worded(lambda line: line.entry.name)),
        name_column("value", "value", rank=1, cell=_value_cell),
        name_column("default", "otherwise", "Value without this setting", rank=2,
                    cell=_default_cell),
        column("source", "from", units.TEXT, "Where the value comes from", rank=2,
               cell=lambda line: Cell(line.entry.source, _source(line.entry))),
    ),
    unlisted=(
        name_column("of", "of", "The topic or broker", rank=1,
                    cell=worded(lambda line: resource_text(line.resource))),
        name_column("other", "other", "Value of the other topic or broker", rank=1,
                    cell=_other_cell),
    ),
)  # fmt: skip


def resource_of(path: ViewPath) -> ConfigResource:
    """The topic or broker of a view."""
    if path.view == "topic_configs":
        return ConfigResource(scope=ConfigScope.TOPIC, name=path.params["topic"])
    return ConfigResource(scope=ConfigScope.BROKER, name=path.params["broker"])


def resource_text(resource: ConfigResource) -> str:
    """``orders``, ``broker:101``: as the command line names it."""
    is_broker = resource.scope is ConfigScope.BROKER
    return f"{BROKER if is_broker else ''}{resource.name}"


def compared_columns(other: str, own: str = "value") -> tuple[Column, ...]:
    """The columns of a comparison with ``other``."""
    titles = {"value": own, "other": other}
    shown = CONFIGS.only("config", "value", "other", "default", "source")
    return tuple(replace(it, title=titles.get(it.id, it.title)) for it in shown)


def config_rows(
    resource: ConfigResource,
    entries: Sequence[ConfigEntry],
    *,
    filter: str = "",  # noqa: A002 - as the address has it
    other: Sequence[ConfigEntry] | None = None,
) -> tuple[Row, ...]:
    """A row for each config whose name or text holds ``filter``: first what differs from the
    other one (where there is one; also what that one alone has), then what is set here, then by
    name."""
    wanted = filter.strip().lower()
    beside = None if other is None else {entry.name: entry for entry in other}
    ranked = [
        (not _differs(entry, beside), not is_changed(resource.scope, entry), entry.name, entry)
        for entry in compared(entries, other)
        if wanted in entry.name or wanted in entry.documentation.lower()
    ]
    ordered = sorted(ranked, key=_order)
    return CONFIGS.rows(_Line(resource, entry, beside) for *_, entry in ordered)


def compared(
    entries: Sequence[ConfigEntry], other: Sequence[ConfigEntry] | None
) -> tuple[ConfigEntry, ...]:
    """The entries, and one without a value for each config that only the other one has."""
    known = {entry.name for entry in entries}
    absent = (
        replace(
            it, value=None, source=ABSENT, synonyms=(),
            is_default=True, is_read_only=True, is_sensitive=False,
        )
        for it in other or ()
        if it.name not in known
    )  # fmt: skip
    return (*entries, *absent)


def is_changed(scope: ConfigScope, entry: ConfigEntry) -> bool:
    """Whether it was set for a topic, or for a broker by any means."""
    return entry.source in _OWN[scope] if scope is ConfigScope.TOPIC else not entry.is_default


def is_own(scope: ConfigScope, entry: ConfigEntry) -> bool:
    """Whether a change of the topic or broker could remove it."""
    return entry.source in _OWN[scope]


def differing(
    mine: Sequence[ConfigEntry], others: Sequence[ConfigEntry]
) -> tuple[tuple[str, ConfigEntry | None, ConfigEntry | None], ...]:
    """Configs of two resources that are not alike, by name; None: that one has no such config."""
    one, two = ({entry.name: entry for entry in entries} for entries in (mine, others))
    pairs = ((name, one.get(name), two.get(name)) for name in sorted(one.keys() | two.keys()))
    return tuple(it for it in pairs if it[1] is None or it[2] is None or it[1].value != it[2].value)


def value_text(entry: ConfigEntry) -> str:
    """The value, and in brackets what it means where that is not the same."""
    return _told(entry.name, entry.value, is_hidden=entry.is_sensitive)


def value_otherwise(scope: ConfigScope, entry: ConfigEntry) -> str | None:
    """The value that holds once the own setting is removed; without one, the value itself."""
    if entry.source not in _OWN[scope]:
        return entry.value
    known = _known(scope, entry.name)
    inherited = next((it for it in entry.synonyms if it.source != entry.source), None)
    if inherited is None or inherited.value is None:
        return known.default if known else None
    factor = dict(known.server_synonyms).get(inherited.name, 1) if known else 1
    is_plain = factor == 1 or inherited.value.strip() == "-1"
    return inherited.value if is_plain else str(int(inherited.value) * factor)


def facts(scope: ConfigScope, entry: ConfigEntry) -> tuple[tuple[str, str], ...]:
    """Facts about one config that its row has no room for, as (name, words)."""
    known = _known(scope, entry.name)
    places = [
        f"{it.name}={_told(it.name, it.value)} ({SOURCES.get(it.source, str(it.source))})"
        for it in entry.synonyms
    ]
    found = {
        "what it does": plain_text(entry.documentation),
        "type": _type(entry, known),
        "valid in Kafka 4.1": known.valid if known else "",
        "set in (the first counts)": ", ".join(places) if len(places) > 1 else "",
        "changes": "only with a restart of the broker" if entry.is_read_only else "",
    }
    return tuple((name, words) for name, words in found.items() if words)


def plain_text(documentation: str) -> str:
    """Kafka's text without its HTML."""
    return " ".join(unescape(sub(r"<[^>]*>", " ", documentation)).split())


def document(scope: ConfigScope, entry: ConfigEntry) -> Mapping[str, str | bool | None]:
    """For JSON."""
    known = _known(scope, entry.name)
    return {
        "name": entry.name,
        "value": entry.value,
        "source": _source(entry),
        "otherwise": value_otherwise(scope, entry),
        "type": _type(entry, known),
        "valid": known.valid if known else None,
        "is_default": entry.is_default,
        "is_read_only": entry.is_read_only,
        "is_sensitive": entry.is_sensitive,
    }


def _differs(entry: ConfigEntry, beside: Mapping[str, ConfigEntry] | None) -> bool:
    if beside is None:
        return False
    than = beside.get(entry.name)
    return than is None or entry.source == ABSENT or than.value != entry.value


def _order(ranked: tuple[bool, bool, str, ConfigEntry]) -> tuple[bool, bool, str]:
    return ranked[:3]


def _source(entry: ConfigEntry) -> str:
    return SOURCES.get(entry.source, str(entry.source))


def _told(name: str, value: str | None, *, is_hidden: bool = False) -> str:
    if value is None:
        return HIDDEN if is_hidden else NONE
    return value_words(name, value)


def _type(entry: ConfigEntry, known: KnownConfig | None) -> str:
    number = entry.type or (known.type if known else 0)
    return ConfigType(number).name.lower() if number in [*ConfigType] else ""


def _known(scope: ConfigScope, name: str) -> KnownConfig | None:
    return _KNOWN[scope]().get(name)
