"""Formats that people chose for a topic, kept for all screens of this user."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from control.messages.decoding.formats import Formats, format_of
from control.messages.state_file import read_state, state_file, write_state

FILE: Final = "formats.json"
TOPICS_MAX: Final = 2_000
"""Of each cluster; the choice made first goes first."""
CLUSTERS_MAX: Final = 64


class RememberedFormats:
    """By cluster id and topic: the formats of keys and values."""

    def __init__(self, file: Path | None = None) -> None:
        """``file``: another one than the user's."""
        self._file = state_file(FILE) if file is None else file

    def of(self, cluster_id: str, topic: str) -> Formats:
        """Those chosen last; none were: detected."""
        found = _mapping(_mapping(read_state(self._file)).get(cluster_id)).get(topic)
        if not isinstance(found, list) or len(found) != 2:
            return Formats()
        try:
            key, value = map(format_of, map(str, found))
        except ValueError:
            return Formats()
        return Formats(key=key, value=value)

    def keep(self, cluster_id: str, topic: str, formats: Formats) -> None:
        """From now on.

        :raises OSError: the file cannot be written; what it held stays.
        """
        if self._file is None or self.of(cluster_id, topic) == formats:
            return
        state = dict(read_state(self._file))
        topics = dict(_mapping(state.pop(cluster_id, None)))
        topics.pop(topic, None)
        if formats != Formats():
            topics[topic] = [formats.key.value, formats.value.value]
        state[cluster_id] = dict([*topics.items()][-TOPICS_MAX:])
        write_state(self._file, dict([*state.items()][-CLUSTERS_MAX:]))

    def chosen(self, cluster_id: str, topic: str, *, key: str, value: str) -> Formats:
        """Formats as a path or flags name them; where both are empty, those chosen last.

        :raises ValueError: there is no format of this name.
        """
        if not key and not value:
            return self.of(cluster_id, topic)
        return Formats(key=format_of(key), value=format_of(value))


def _mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}
