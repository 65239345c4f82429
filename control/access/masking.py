"""Masking rules: fields that nobody sees in the records of some topics. Pure.

A field is ``key``, ``value``, ``headers.NAME``, or a path into the document that a key or value
decodes to: ``value.card.number``. Lists on the way are walked through. ``*`` is any one name,
``**`` any names, also none; a name with a dot stands in quotes.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

MASK: Final = "***"
"""Stands for what is masked: text, number, list or object alike."""
KEY, VALUE, HEADERS = "key", "value", "headers"
ANY_NAME, ANY_NAMES = "*", "**"
DEPTH_MAX: Final = 20
_SEGMENT: Final = re.compile(r'\.(?:"([^"]+)"|([^."]+))')


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A field of a record; without names it is the whole key or value."""

    part: str
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> "FieldPath":
        """As the settings have it.

        :raises ValueError: it names no field.
        """
        part = text.partition(".")[0]
        rest = text[len(part) :]
        names = tuple(quoted or plain for quoted, plain in _SEGMENT.findall(rest))
        if part not in (KEY, VALUE, HEADERS) or _SEGMENT.sub("", rest) or len(names) > DEPTH_MAX:
            words = "write key, value, value.FIELD.FIELD, key.FIELD or headers.NAME"
            raise ValueError(f"{text!r} is no field: {words}, at most {DEPTH_MAX} names")
        if part == HEADERS and len(names) != 1:
            raise ValueError(f"{text!r} is no field: write headers.NAME, or headers.* for all")
        return cls(part, names)

    def is_of_header(self, name: str) -> bool:
        """Whether it is a header of this name; upper case counts as lower case."""
        return self.part == HEADERS and fnmatchcase(name.lower(), self.names[0].lower())

    def masked(self, document: Any) -> Any:
        """The document without its fields."""
        return _masked(document, self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskingRule:
    """Fields that are masked in the records of some topics."""

    topics: tuple[str, ...]
    """Patterns."""
    fields: tuple[FieldPath, ...]
    clusters: tuple[str, ...] = ()
    """Names; none: of all clusters."""

    def is_about(self, cluster: str, topic: str) -> bool:
        """Whether it holds there. Of a cluster without a name all rules hold: an address of a
        named one that the settings lack would lift them otherwise."""
        is_there = not self.clusters or not cluster or cluster in self.clusters
        return is_there and any(fnmatchcase(topic, pattern) for pattern in self.topics)


def fields_of(rules: Iterable[MaskingRule], cluster: str, topic: str) -> frozenset[FieldPath]:
    """All fields that are masked in a topic."""
    return frozenset(it for rule in rules if rule.is_about(cluster, topic) for it in rule.fields)


def masked_document(document: Any, fields: Collection[FieldPath]) -> Any:
    """A document without any of the fields."""
    for field in fields:
        document = field.masked(document)
    return document


def _masked(document: Any, names: tuple[str, ...]) -> Any:
    if not names or not isinstance(document, dict | list):
        # A path that would go on into a text ends there: its sender meant something else by it.
        return document if names[:1] == (ANY_NAMES,) else MASK
    if isinstance(document, list):
        return [_masked(each, names) for each in document]
    first, rest = names[0], names[1:]
    if first != ANY_NAMES:
        is_any = first == ANY_NAME
        return {
            name: _masked(each, rest) if is_any or name == first else each
            for name, each in document.items()
        }
    if not rest:
        return MASK
    return {name: _masked(each, names) for name, each in _masked(document, rest).items()}
