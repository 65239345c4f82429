"""Kafka's properties of a broker that are taken and change nothing, and why.

docs/reference/compatibility.md lists them, and a start warns about each that a file sets.
"""

from collections.abc import Mapping
from typing import Final

_REASONS: Final = {
    "one event loop serves a broker": (
        "num.network.threads num.io.threads num.replica.fetchers background.threads "
        "num.recovery.threads.per.data.dir queued.max.requests log.cleaner.threads "
        "log.cleaner.dedupe.buffer.size"
    ),
    "sizes and time-outs of connections are fixed": (
        "socket.send.buffer.bytes socket.receive.buffer.bytes socket.listen.backlog.size "
        "replica.socket.timeout.ms replica.socket.receive.buffer.bytes request.timeout.ms "
        "max.connections.per.ip"
    ),
    "the quorum's other times follow from its election and fetch time-outs": (
        "controller.quorum.election.backoff.max.ms controller.quorum.append.linger.ms "
        "controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms"
    ),
    "voters are those of controller.quorum.voters": "controller.quorum.bootstrap.servers",
    "the metadata log is in log.dirs, and its snapshots bound it": (
        "metadata.log.dir metadata.log.segment.bytes metadata.max.retention.bytes "
        "metadata.max.retention.ms"
    ),
    "a stopping broker asks for controlled.shutdown.timeout.ms": (
        "controlled.shutdown.max.retries controlled.shutdown.retry.backoff.ms"
    ),
    "the classic and the consumer protocol are always served, share groups never": (
        "group.coordinator.rebalance.protocols group.share.enable "
        "share.coordinator.state.topic.replication.factor"
    ),
    "the throttle of replicas has no windows": (
        "replication.quota.window.num replication.quota.window.size.seconds"
    ),
    "figures go into the metrics topic": "metric.reporters metrics.num.samples",
    "a broker has one directory": "replica.alter.log.dirs.io.max.bytes.per.second",
    "record formats 0 and 1 are not served": "log.message.downconversion.enable",
}

WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    name: reason for reason, names in _REASONS.items() for name in names.split()
}
"""Property -> why it changes nothing."""
