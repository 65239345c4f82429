"""Receivers over HTTP: a webhook that gets JSON, and an Alertmanager."""

import base64
import json
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.client import HTTPException
from typing import Any, Final
from urllib.parse import urlsplit

from control.alert_delivery.receivers.receiver import TIMEOUT_S, DeliveryError, shortened
from control.alerts.alert import Alert
from control.alerts.messages import Message
from control.kafka.connection.http_deadline import connected_until

ANSWER_BYTES_MAX: Final = 64 << 10
REFRESH_MS: Final = 60_000
"""So often an Alertmanager is told that an alert goes on."""
ENDS_AFTER_REFRESHES: Final = 4
"""It resolves an alert by itself once it was not told of it for so long, as of Prometheus."""
ALERTS_PATH: Final = "/api/v2/alerts"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpPlace:
    """Where to post. Its address may be a secret, as that of a chat's webhook is: it is not shown,
    only its host is."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    ssl_context: ssl.SSLContext | None = None
    timeout_s: float = TIMEOUT_S

    @property
    def shown(self) -> str:
        """``https://hooks.example``."""
        parts = urlsplit(self.url)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname}{port}"

    def post(self, document: object) -> None:
        """Post JSON. The whole answer must come within the time.

        :raises DeliveryError: it was not taken.
        """
        try:
            status, answer = self._posted(json.dumps(document).encode())
        except (OSError, HTTPException, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise DeliveryError(f"{self.shown}: {shortened(why or 'no answer')}") from error
        if not 200 <= status < 300:
            words = shortened(answer.decode(errors="replace"))
            raise DeliveryError(f"{self.shown} answered {status}: {words or 'without a reason'}")

    def _posted(self, body: bytes) -> tuple[int, bytes]:
        where = urlsplit(self.url)
        path = (where.path or "/") + (f"?{where.query}" if where.query else "")
        deadline_s = time.monotonic() + self.timeout_s
        with connected_until(self.url, self.ssl_context, deadline_s) as connection:
            connection.request("POST", path, body, self._headers())
            answer = connection.getresponse()
            return answer.status, answer.read(ANSWER_BYTES_MAX)

    def _headers(self) -> dict[str, str]:
        headers = {"content-type": "application/json", **self.headers}
        if self.token is not None:
            headers["authorization"] = f"Bearer {self.token}"
        elif self.username is not None:
            pair = f"{self.username}:{self.password or ''}".encode()
            headers["authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        return headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Posts each message as one JSON document."""

    to: HttpPlace
    kind: str = "webhook"
    refresh_ms: int | None = None

    @property
    def place(self) -> str:
        return self.to.shown

    def send(self, message: Message) -> None:
        self.to.post(message.document())


@dataclass(frozen=True, slots=True, kw_only=True)
class Alertmanager:
    """Posts alerts to the API of version 2. It groups, silences and repeats by its own rules, so
    it is told every minute that an alert goes on."""

    to: HttpPlace
    kind: str = "alertmanager"
    refresh_ms: int | None = REFRESH_MS

    @property
    def place(self) -> str:
        return self.to.shown

    def send(self, message: Message) -> None:
        self.to.post([self._alert(it.alert, message) for it in message.tellings])

    def _alert(self, alert: Alert, message: Message) -> dict[str, Any]:
        ends_ms = alert.resolved_ms
        if ends_ms is None:
            ends_ms = message.at_ms + ENDS_AFTER_REFRESHES * (self.refresh_ms or REFRESH_MS)
        told = message.links(alert)
        return {
            "labels": {
                "alertname": alert.rule,
                "cluster": alert.cluster,
                "subject": alert.subject,
                "severity": alert.severity,
                "alert_id": alert.id,
            },
            "annotations": {
                "summary": alert.match.words,
                "next_step": alert.match.next_step,
                "step_link": told.step,
            },
            "startsAt": _time(min(alert.fired_ms or alert.since_ms, ends_ms)),
            "endsAt": _time(ends_ms),
            **({"generatorURL": told.view} if told.view else {}),
        }


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
