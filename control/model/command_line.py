"""Commands that we tell somebody to type: with the flags that make them mean the same cluster.

The composition root says once which flags those are. Texts name a command in backquotes
(`` `partiscope moves` ``); ``typed`` adds what it takes and does not have yet.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from shlex import quote
from typing import Final

_TOLD: Final = re.compile(r"`partiscope (?P<name>[a-z][a-z-]*)(?P<rest>[^`]*)`")
_SCREENS: Final = frozenset({"tui", "dashboard", "exporter"})
_LISTS: Final = frozenset({"topics list", "groups list"})
_ALERTS: Final = frozenset(
    {"alerts list", "alerts describe", "alerts silences", "alerts silence", "alerts unsilence"}
    | {"alerts run"}
)
_ALERT_TRIALS: Final = frozenset({"alerts check", "alerts backtest", "alerts run"})
_FIGURES: Final = _SCREENS | _LISTS | _ALERT_TRIALS | {"status", "brokers", "partitions", "what-if"}
_OPERATIONS: Final = _SCREENS | _ALERTS | {"moves", "reassign", "journal", "brokers drain"}
_WITH_OWN_FLAGS: Final = frozenset(
    {"brokers acks-lesson", "brokers cordon", "brokers uncordon", "brokers drain"}
    | {"brokers clear-throttles"}
    | _LISTS
    | _ALERTS
    | _ALERT_TRIALS
)
"""They take other flags than the rest of their group."""
_ABOUT_CLUSTER: Final = (
    _FIGURES
    | _OPERATIONS
    | _WITH_OWN_FLAGS
    | {"topics", "groups", "configs", "plan", "elect", "produce", "tail", "browse", "doctor"}
    | {"check"}
)
_CLUSTER_FLAGS: Final = ("--cluster", "--bootstrap")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFlags:
    """Each whole and quoted for a shell, as ``--data /srv/ps``; empty: it goes without."""

    data: str = ""
    cluster: str = ""
    bus: str = ""
    store: str = ""

    def of(self, command: str) -> tuple[str, ...]:
        """Those that a command takes: ``status``, or ``brokers drain`` of a group."""
        if command not in _WITH_OWN_FLAGS:
            command = command.partition(" ")[0]
        takes = (
            (self.data, command != "broker"),
            (self.cluster, command in _ABOUT_CLUSTER),
            (self.bus, command in _OPERATIONS),
            (self.store, command in _FIGURES | {"clusters", "export", "history"}),
        )
        return tuple(flag for flag, is_taken in takes if flag and is_taken)


def cluster_flag(name: str) -> str:
    """For a cluster by its name or its address; empty: it is the usual one, which has neither."""
    if not name:
        return ""
    return f"{'--bootstrap' if ':' in name else '--cluster'} {quote(name)}"


_flags: Callable[[], CommandFlags] = CommandFlags


def use_flags(flags: Callable[[], CommandFlags]) -> None:
    """From here on commands are told with these, asked for each time."""
    global _flags
    _flags = flags


def known_flags() -> CommandFlags:
    """Those of commands that are told now."""
    return _flags()


def command(words: str) -> str:
    """``partiscope`` with these words and the flags that they lack, to be typed."""
    name, _, rest = words.partition(" ")
    return f"partiscope {name}{f' {rest}' if rest else ''}{_lacking(name, rest)}"


def typed(text: str) -> str:
    """A text in which every command can be typed as it stands."""
    return _TOLD.sub(
        lambda told: (
            f"`partiscope {told['name']}{told['rest']}{_lacking(told['name'], told['rest'])}`"
        ),
        text,
    )


def _lacking(name: str, rest: str) -> str:
    given = {word.partition("=")[0] for word in rest.split()}
    if given & set(_CLUSTER_FLAGS):
        given |= set(_CLUSTER_FLAGS)
        if name == "up":  # what watches another cluster has a data directory of its own
            given.add("--data")
    command_of_group = " ".join([name, *rest.split()[:1]])
    lacking = [flag for flag in _flags().of(command_of_group) if flag.split()[0] not in given]
    return "".join(f" {flag}" for flag in lacking)
