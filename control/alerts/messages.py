"""Messages: tellings of one rule and cluster that one receiver gets together, in words and JSON."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from control.alerts.alert import Alert
from control.alerts.machine import Tell, Telling

VERSION: Final = 1
"""Of the JSON document: keys come, none goes or changes."""
ALERTS_PER_MESSAGE_MAX: Final = 100
"""More alerts go into further messages; none is left out."""
FIRING: Final = "firing"
RESOLVED: Final = "resolved"


class Page(NamedTuple):
    """The page as a reader of messages reaches it."""

    base: str = ""
    """Empty: it is not known, and there are no links."""
    cluster: str = ""
    """The name of the cluster, where the page shows several."""

    def address(self, path: str) -> str:
        """Address of a view path; empty where there is none."""
        if not self.base or not path:
            return ""
        more = f"{'&' if '?' in path else '?'}cluster={quote(self.cluster, safe='')}"
        return f"{self.base}/{path}{more if self.cluster else ''}"


NO_PAGE: Final = Page()


class Links(NamedTuple):
    """Addresses of the page for one alert."""

    view: str
    step: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message to one receiver."""

    receiver: str
    rule: str
    cluster: str
    status: str
    """FIRING or RESOLVED."""
    tellings: Sequence[Telling]
    at_ms: int
    page: Page = NO_PAGE

    @property
    def id(self) -> str:
        """The same when the same tellings are sent once more."""
        return sha256("".join(it.id for it in self.tellings).encode()).hexdigest()[:16]

    @property
    def severity(self) -> str:
        return self.tellings[0].alert.severity

    @property
    def title(self) -> str:
        """``FIRING: lag, billing (prod)``; ``RESOLVED: lag, 3 alerts (prod)``."""
        count = len(self.tellings)
        what = self.tellings[0].alert.subject if count == 1 else f"{count:,} alerts"
        again = " again" if self.status == FIRING and self.is_repeat else ""
        where = f" ({self.cluster})" if self.cluster else ""
        return f"{self.status.upper()}{again}: {self.rule}, {what}{where}"

    @property
    def is_repeat(self) -> bool:
        return all(it.kind is Tell.REPEATS for it in self.tellings)

    @property
    def text(self) -> str:
        """For people: a paragraph for each alert."""
        return "\n\n".join(self._paragraph(it.alert) for it in self.tellings)

    def _paragraph(self, alert: Alert) -> str:
        lines = [f"{alert.subject}: {alert.match.words}" if alert.match.words else alert.subject]
        lines.append(f"Since {_time_text(alert.since_ms)}.")
        if alert.resolved_ms is not None:
            why = f": {alert.why_resolved}" if alert.why_resolved else ""
            lines[-1] = (
                f"From {_time_text(alert.since_ms)} to {_time_text(alert.resolved_ms)}{why}."
            )
        elif alert.match.next_step:
            lines.append(f"Next: {alert.match.next_step}.")
        if alert.is_open:
            links = self.links(alert)
            lines += [it for it in dict.fromkeys((links.step, links.view)) if it]
        return "\n".join(lines)

    def links(self, alert: Alert) -> Links:
        """Where the page shows the row, and where its next step is taken; empty without a page."""
        match = alert.match
        return Links(self.page.address(match.path), self.page.address(match.step))

    def document(self) -> dict[str, Any]:
        """For programs (docs/operate/alerts.md)."""
        return {
            "version": VERSION,
            "id": self.id,
            "status": self.status,
            "is_repeat": self.is_repeat,
            "receiver": self.receiver,
            "rule": self.rule,
            "cluster": self.cluster,
            "severity": self.severity,
            "sent_ms": self.at_ms,
            "title": self.title,
            "text": self.text,
            "alerts": [self._alert_document(it) for it in self.tellings],
        }

    def _alert_document(self, telling: Telling) -> dict[str, Any]:
        alert = telling.alert
        links = self.links(alert)
        return {
            "id": alert.id,
            "telling_id": telling.id,
            "status": self.status,
            "subject": alert.subject,
            "severity": alert.severity,
            "words": alert.match.words,
            "since_ms": alert.since_ms,
            "fired_ms": alert.fired_ms,
            "resolved_ms": alert.resolved_ms,
            "why_resolved": alert.why_resolved,
            "next_step": alert.match.next_step,
            "link": links.view,
            "step_link": links.step,
        }


def messages_of(
    tellings: Iterable[Telling], *, at_ms: int, page: Page = NO_PAGE
) -> Iterator[Message]:
    """Tellings of one receiver, gathered by rule, cluster and status, in their order. First ones
    and repeats go apart, so that a message that is sent again stays the same."""
    grouped: dict[tuple[str, str, str, Tell], list[Telling]] = {}
    for telling in tellings:
        alert = telling.alert
        key = (telling.receiver, alert.rule, alert.cluster, telling.kind)
        grouped.setdefault(key, []).append(telling)
    for (receiver, rule, cluster, kind), found in grouped.items():
        for start in range(0, len(found), ALERTS_PER_MESSAGE_MAX):
            part = found[start : start + ALERTS_PER_MESSAGE_MAX]
            yield Message(
                receiver=receiver,
                rule=rule,
                cluster=cluster,
                status=RESOLVED if kind is Tell.RESOLVES else FIRING,
                tellings=part,
                at_ms=at_ms,
                page=page,
            )


def _time_text(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
