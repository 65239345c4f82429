"""Kafka's broker properties that other rooms read, or that are accepted without effect.

Needed only to tell an operator which names of his file mean nothing at all.
"""

_LOG = (
    "log.segment.bytes log.roll.ms log.roll.hours log.roll.jitter.ms log.roll.jitter.hours "
    "log.retention.ms log.retention.minutes log.retention.hours log.retention.bytes "
    "log.index.size.max.bytes log.index.interval.bytes log.cleanup.policy "
    "log.segment.delete.delay.ms log.flush.interval.messages log.flush.interval.ms "
    "log.flush.scheduler.interval.ms log.message.timestamp.type "
    "log.message.timestamp.before.max.ms log.message.timestamp.after.max.ms "
    "log.preallocate log.message.downconversion.enable compression.type "
    "log.cleaner.threads log.cleaner.dedupe.buffer.size "
    "log.cleaner.delete.retention.ms log.cleaner.min.compaction.lag.ms "
    "log.cleaner.max.compaction.lag.ms log.cleaner.min.cleanable.ratio "
    "log.flush.start.offset.checkpoint.interval.ms num.recovery.threads.per.data.dir"
)
_GROUPS = (
    "group.initial.rebalance.delay.ms group.min.session.timeout.ms group.max.session.timeout.ms "
    "group.max.size offset.metadata.max.bytes offsets.commit.timeout.ms "
    "offsets.retention.minutes offsets.retention.check.interval.ms offsets.load.buffer.size "
    "offsets.topic.compression.codec group.coordinator.rebalance.protocols "
    "group.share.enable share.coordinator.state.topic.replication.factor"
)
_TRANSACTIONS = (
    "transaction.state.log.replication.factor transaction.state.log.num.partitions "
    "transaction.state.log.min.isr transaction.state.log.segment.bytes "
    "transactional.id.expiration.ms producer.id.expiration.ms"
)
_QUORUM = (
    "controller.quorum.election.timeout.ms controller.quorum.fetch.timeout.ms "
    "controller.quorum.election.backoff.max.ms controller.quorum.append.linger.ms "
    "controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms "
    "controller.quorum.bootstrap.servers metadata.log.dir metadata.log.segment.bytes "
    "metadata.max.retention.bytes metadata.max.retention.ms"
)
_PROCESS = (
    "num.network.threads num.io.threads num.replica.fetchers background.threads "
    "queued.max.requests socket.send.buffer.bytes socket.receive.buffer.bytes "
    "socket.listen.backlog.size max.connections.per.ip request.timeout.ms "
    "replica.socket.timeout.ms replica.socket.receive.buffer.bytes "
    "controlled.shutdown.max.retries controlled.shutdown.retry.backoff.ms "
    "create.topic.policy.class.name alter.config.policy.class.name "
    "quota.window.num quota.window.size.seconds replication.quota.window.num "
    "replication.quota.window.size.seconds metric.reporters metrics.num.samples"
)

KNOWN_ELSEWHERE: frozenset[str] = frozenset(
    " ".join((_LOG, _GROUPS, _TRANSACTIONS, _QUORUM, _PROCESS)).split()
)
"""Names without a typed field in BrokerConfig."""
