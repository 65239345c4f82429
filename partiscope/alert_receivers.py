"""Receivers of alerts, made of their settings. No other command loads what they need."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from control.alert_delivery.process import AlertSettings
from control.alert_delivery.receivers.http import ALERTS_PATH, Alertmanager, HttpPlace, Webhook
from control.alert_delivery.receivers.others import Apprise, Command, Email
from control.alert_delivery.receivers.receiver import Receiver
from control.alerts.messages import Page
from control.model.units import parse_duration
from partiscope.alert_settings import AlertsSettings, ReceiverSettings
from partiscope.connections import tls_context
from partiscope.settings import SettingsError

_MAIL_PORTS: Final = {"starttls": 587, "tls": 465, "none": 25}


def alert_settings(settings: AlertsSettings, names: Sequence[str]) -> AlertSettings:
    """Everything that the process needs; ``names`` are those of the clusters.

    Raises:
        SettingsError: a file of a receiver cannot be read.
    """
    return AlertSettings(
        rules=settings.to_rules(),
        receivers=receivers_of(settings),
        windows=[it.to_window() for it in settings.maintenance],
        pages=_pages(settings.page, names),
        group_wait_ms=round(parse_duration(settings.group_wait) or 0),
    )


def receivers_of(settings: AlertsSettings) -> dict[str, Receiver]:
    """All receivers, by name.

    Raises:
        SettingsError: a file of one cannot be read.
    """
    found = {}
    for name, receiver in settings.receivers.items():
        try:
            found[name] = _RECEIVERS[receiver.kind](receiver)
        except ValueError as error:
            raise SettingsError(f"alerts.receivers.{name}: {error}") from error
    return found


def _place(settings: ReceiverSettings, url: str) -> HttpPlace:
    file = settings.ssl_cafile
    return HttpPlace(
        url=url,
        headers={name: it.get_secret_value() for name, it in settings.headers.items()},
        username=settings.username,
        password=settings.secret("password"),
        token=settings.secret("token"),
        ssl_context=None if file is None else tls_context(file, None, None, None),
        timeout_s=settings.seconds,
    )


def _webhook(settings: ReceiverSettings) -> Receiver:
    return Webhook(to=_place(settings, settings.secret("url") or ""))


def _alertmanager(settings: ReceiverSettings) -> Receiver:
    """Its own address is enough."""
    url = (settings.secret("url") or "").rstrip("/")
    return Alertmanager(
        to=_place(settings, url if url.endswith(ALERTS_PATH) else url + ALERTS_PATH)
    )


def _email(settings: ReceiverSettings) -> Receiver:
    security, file = settings.security or "starttls", settings.ssl_cafile
    return Email(
        host=settings.host or "",
        port=settings.port or _MAIL_PORTS[security],
        sender=settings.sender or "",
        to=settings.to,
        security=security,
        username=settings.username,
        password=settings.secret("password"),
        ssl_context=None if file is None else tls_context(file, None, None, None),
        timeout_s=settings.seconds,
    )


def _command(settings: ReceiverSettings) -> Receiver:
    return Command(words=settings.command, timeout_s=settings.seconds)


def _apprise(settings: ReceiverSettings) -> Receiver:
    return Apprise(url=settings.secret("url") or "", timeout_s=settings.seconds)


_RECEIVERS: Final[Mapping[str, Callable[[ReceiverSettings], Receiver]]] = {
    "webhook": _webhook,
    "alertmanager": _alertmanager,
    "email": _email,
    "command": _command,
    "apprise": _apprise,
}


def _pages(page: str, names: Sequence[str]) -> dict[str, Page]:
    """The page of each cluster; of several, its addresses carry the cluster's name."""
    is_several = len(names) > 1
    return {name: Page(page.rstrip("/"), cluster=name if is_several else "") for name in names}
