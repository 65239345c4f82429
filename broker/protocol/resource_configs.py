"""Configs of groups and of client metrics subscriptions, as Kafka 4.1 has them.

Classic groups heed none of them, in Kafka neither; without a plugin for telemetry, neither does
anybody heed a subscription. They are checked, kept and described, so that they can be copied.
"""

import re
from collections.abc import Mapping
from typing import Final

from broker.protocol.known_configs import ConfigType, KnownConfig

CLIENT_FIELDS: Final = frozenset(
    "client_" + name
    for name in (
        "id",
        "instance_id",
        "software_name",
        "software_version",
        "source_address",
        "source_port",
    )
)
"""What a subscription can match."""


def _config(
    name: str, default: int | str, valid: str, doc: str, type_: ConfigType | None = None
) -> KnownConfig:
    type_ = type_ or (ConfigType.INT if isinstance(default, int) else ConfigType.STRING)
    return KnownConfig(name=name, type=type_, default=str(default), valid=valid, doc=doc)


_SESSION: Final = "The timeout to detect client failures when using the {} group protocol."
_HEARTBEAT: Final = "The heartbeat interval given to the members of a {} group."
_SESSION_MS: Final = "[45000,...,60000]"
_HEARTBEAT_MS: Final = "[5000,...,15000]"

GROUP_CONFIGS: Final[Mapping[str, KnownConfig]] = {
    config.name: config
    for config in (
        *(
            _config(f"{kind}.session.timeout.ms", 45_000, _SESSION_MS, _SESSION.format(kind))
            for kind in ("consumer", "share", "streams")
        ),
        *(
            _config(f"{kind}.heartbeat.interval.ms", 5_000, _HEARTBEAT_MS, _HEARTBEAT.format(kind))
            for kind in ("consumer", "share", "streams")
        ),
        _config(
            "share.record.lock.duration.ms",
            30_000,
            "[15000,...,60000]",
            "The record acquisition lock duration in milliseconds for share groups.",
        ),
        _config(
            "share.auto.offset.reset",
            "latest",
            "offset reset",
            "The strategy to initialize the share-partition start offset.",
        ),
        _config(
            "share.isolation.level",
            "read_uncommitted",
            "[read_committed, read_uncommitted]",
            "Controls how to read records written transactionally.",
        ),
        _config(
            "streams.num.standby.replicas",
            0,
            "[0,...,2]",
            "The number of standby replicas for each task.",
        ),
    )
}

CLIENT_METRICS_CONFIGS: Final[Mapping[str, KnownConfig]] = {
    config.name: config
    for config in (
        _config("metrics", "", "", "Telemetry metric name prefix list", ConfigType.LIST),
        _config("interval.ms", 300_000, "", "Metrics push interval in milliseconds"),
        _config("match", "", "", "Client match criteria", ConfigType.LIST),
    )
}

_DURATION: Final = re.compile(r"by_duration:P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?")


def problem_of_group(values: Mapping[str, str]) -> str:
    """The fault of all configs of a group together; empty: none."""
    reset = values.get("share.auto.offset.reset", "latest").lower()
    if reset not in ("latest", "earliest") and not _DURATION.fullmatch(
        reset.upper().replace("BY_DURATION", "by_duration")
    ):
        return "share.auto.offset.reset must be latest, earliest or by_duration:<ISO duration>"
    return ""


def problem_of_interval(values: Mapping[str, str]) -> str:
    """The fault of the push interval of a subscription; empty: none."""
    interval_ms = int(values.get("interval.ms", CLIENT_METRICS_CONFIGS["interval.ms"].default or 0))
    if 100 <= interval_ms <= 3_600_000:
        return ""
    return (
        f"Invalid value {interval_ms} for interval.ms, interval must be between 100 and 3600000 "
        "(1 hour)"
    )


def problem_of_subscription(values: Mapping[str, str]) -> str:
    """The fault of all configs of a client metrics subscription; empty: none."""
    for pattern in filter(None, (item.strip() for item in values.get("match", "").split(","))):
        field, _, expression = pattern.partition("=")
        if field.strip() not in CLIENT_FIELDS or not _is_expression(expression):
            return f"Illegal client matching pattern: {pattern}"
    return ""


def _is_expression(text: str) -> bool:
    try:
        re.compile(text.strip())
    except (re.error, RecursionError, OverflowError):  # nested too deeply, repeated too often
        return False
    return bool(text) and "=" not in text
