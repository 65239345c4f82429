"""The section ``[alerts]`` of the settings: rules, receivers, maintenance windows."""

from collections.abc import Mapping
from datetime import time
from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)

from broker.host_name import is_host_name
from control.alerts.rules import (
    RECEIVERS_MAX,
    RULES_MAX,
    AlertRule,
    parse_condition,
)
from control.alerts.silences import ANY, DAYS, MaintenanceWindow, Matcher
from control.model.units import parse_duration
from partiscope.connections import PemFile, SecretFile, plain_secret
from partiscope.setting_types import Number, Text

WINDOWS_MAX: Final = 100
NEVER: Final = "never"
TIMEOUT_S_MAX: Final = 55.0
"""A library that takes longer counts as hanging."""


def _require_time(text: str) -> str:
    if parse_duration(text) is None or not any(it.isalpha() for it in text):
        raise ValueError(f"{text!r} is not a time such as 90s, 10m, 4h or 1d")
    return text


def _require_repeat(text: str) -> str:
    return text if text == NEVER else _require_time(text)


Time = Annotated[str, AfterValidator(_require_time)]
Repeat = Annotated[str, AfterValidator(_require_repeat)]
_OF_KIND: Final[Mapping[str, tuple[frozenset[str], frozenset[str]]]] = {
    # Kind: what it needs, and what it takes.
    "webhook": (
        frozenset({"url"}),
        frozenset({"headers", "username", "password", "token", "ssl_cafile"}),
    ),
    "alertmanager": (
        frozenset({"url"}),
        frozenset({"headers", "username", "password", "token", "ssl_cafile"}),
    ),
    "email": (
        frozenset({"host", "sender", "to"}),
        frozenset({"port", "security", "username", "password", "ssl_cafile"}),
    ),
    "command": (frozenset({"command"}), frozenset()),
    "apprise": (frozenset({"url"}), frozenset()),
}
_SECRETS: Final = ("url", "password", "token")
"""Each may be the first line of a file: ``url_file``, ``password_file``, ``token_file``."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class ReceiverSettings(_Section):
    """Where alerts go: ``[alerts.receivers.NAME]``."""

    kind: Literal["webhook", "alertmanager", "email", "command", "apprise"]
    url: SecretStr | None = None
    url_file: SecretFile | None = None
    headers: dict[str, SecretStr] = Field(default_factory=dict, max_length=20)
    username: str | None = None
    password: SecretStr | None = None
    password_file: SecretFile | None = None
    token: SecretStr | None = None
    token_file: SecretFile | None = None
    host: str | None = None
    port: Number | None = Field(default=None, ge=1, le=65_535)
    security: Literal["starttls", "tls", "none"] | None = None
    sender: Text | None = None
    to: tuple[Text, ...] = Field(default=(), max_length=50)
    command: tuple[Text, ...] = Field(default=(), max_length=50)
    ssl_cafile: PemFile | None = None
    timeout: Time = "15s"

    @model_validator(mode="after")
    def _check(self) -> Self:
        needed, taken = _OF_KIND[self.kind]
        given = {it.removesuffix("_file") for it in self.model_fields_set} - {"kind", "timeout"}
        if lacking := sorted(needed - given):
            raise ValueError(f"kind {self.kind!r} needs {', '.join(lacking)}")
        if strange := sorted(given - needed - taken):
            raise ValueError(f"kind {self.kind!r} takes no {', '.join(strange)}")
        for name in _SECRETS:
            if {name, f"{name}_file"} <= self.model_fields_set:
                raise ValueError(f"{name} and {name}_file are both given; write one of them")
        if self.kind in ("webhook", "alertmanager"):
            _check_address(self.secret("url") or "")
        if self.host is not None and not is_host_name(self.host):
            raise ValueError("host: write the name or the IP address of a host")
        if not 0 < self.seconds <= TIMEOUT_S_MAX:
            raise ValueError(f"timeout: write a time of at most {TIMEOUT_S_MAX:g}s")
        return self

    @property
    def seconds(self) -> float:
        """``timeout`` as a number."""
        return (parse_duration(self.timeout) or 0.0) / 1000

    def secret(self, name: str) -> str | None:
        """A secret, or the first line of its file."""
        return plain_secret(getattr(self, name), getattr(self, f"{name}_file"))


def _check_address(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not is_host_name(parts.hostname or ""):
        raise ValueError("url: it is not an address of the form http(s)://HOST:PORT/PATH")
    if parts.username is not None or parts.password is not None:
        raise ValueError("url: it holds a user; write username and password")


class RuleSettings(_Section):
    """One rule: ``[[alerts.rules]]``."""

    name: Text
    when: Text
    severity: Literal["critical", "warning", "notice"] = "warning"
    receivers: tuple[str, ...] | None = Field(default=None, max_length=RECEIVERS_MAX)
    """None: all of them."""
    clusters: tuple[str, ...] = Field(default=(), max_length=64)
    repeat: Repeat | None = None
    resolve_after: Time | None = None

    @field_validator("when")
    @classmethod
    def _check_when(cls, when: str) -> str:
        parse_condition(when)
        return when


class WindowSettings(_Section):
    """Hours of the week in which alerts are not told: ``[[alerts.maintenance]]``."""

    name: Text
    days: tuple[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"], ...] = DAYS
    begin: time = Field(alias="from")
    end: time = Field(alias="until")
    timezone: str = "UTC"
    rule: str = ANY
    subject: str = ANY
    cluster: str = ANY

    @field_validator("timezone")
    @classmethod
    def _check_zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError("there is no such zone; write one such as Europe/Berlin") from error
        return name

    def to_window(self) -> MaintenanceWindow:
        """The window itself."""
        return MaintenanceWindow(
            name=self.name,
            matcher=Matcher(rule=self.rule, subject=self.subject, cluster=self.cluster),
            days=self.days,
            begin=self.begin,
            end=self.end,
            zone=ZoneInfo(self.timezone),
        )


class AlertsSettings(_Section):
    """Alerts: which rules ring, and where."""

    page: str = ""
    """Address of the page, for links in messages."""
    repeat: Repeat = "4h"
    """A firing alert is told again after each such time; ``never``: once."""
    resolve_after: Time = "1m"
    """A row that matches again within this time has not resolved."""
    group_wait: Time = "5s"
    """Alerts of one rule that fire within this time are told together."""
    receivers: dict[str, ReceiverSettings] = Field(default_factory=dict, max_length=RECEIVERS_MAX)
    rules: tuple[RuleSettings, ...] = Field(default=(), max_length=RULES_MAX)
    maintenance: tuple[WindowSettings, ...] = Field(default=(), max_length=WINDOWS_MAX)

    @model_validator(mode="after")
    def _check(self) -> Self:
        names = [it.name for it in self.rules]
        if twice := sorted({it for it in names if names.count(it) > 1}):
            raise ValueError(f"two rules are called {twice[0]!r}; give each a name of its own")
        for rule in self.rules:
            if strange := sorted(set(rule.receivers or ()) - self.receivers.keys()):
                known = ", ".join(sorted(self.receivers)) or "none"
                raise ValueError(
                    f"rule {rule.name!r} names the receiver {strange[0]!r}; there are {known}"
                )
        if self.page:
            _check_address(self.page)
        return self

    def rule(self, rule: RuleSettings) -> AlertRule:
        """A rule with what it leaves to the section."""
        repeat, resolve = rule.repeat or self.repeat, rule.resolve_after or self.resolve_after
        return AlertRule(
            name=rule.name,
            when=rule.when,
            condition=parse_condition(rule.when),
            severity=rule.severity,
            receivers=tuple(self.receivers) if rule.receivers is None else rule.receivers,
            clusters=rule.clusters,
            repeat_ms=None if repeat == NEVER else parse_duration(repeat),
            resolve_after_ms=parse_duration(resolve) or 0.0,
        )

    def to_rules(self) -> tuple[AlertRule, ...]:
        """All rules, in their order."""
        return tuple(map(self.rule, self.rules))
