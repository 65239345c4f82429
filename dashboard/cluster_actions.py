"""Actions on a cluster: one session for all browsers, opened when it is first needed.

Everything here runs on the page's event loop.
"""

from collections.abc import Collection, Mapping
from typing import Any

from control.kafka.connection.connections import settings_of
from control.kafka.errors import KafkaPortError
from control.kafka.records.following import TopicFollower
from control.kafka.records.reader import Looking, RecordReader
from control.model.watched_cluster import WatchedCluster
from control.operations.bus.client import MovesReader
from control.operations.bus.moves_feed import Moves
from control.operations.catalogue.operation import Done, Operation
from control.operations.errors import OperationError, PreviewGoneError
from control.operations.operation_session import Denied, OperationSession
from control.operations.previews import Previewed
from control.operations.role_check import check_records

ClusterActionError = (KafkaPortError, OperationError, OSError, ValueError)
"""What an operator is told instead of an exception."""

Values = Mapping[str, str]


class ClusterActions:
    """Acts on one cluster, if it has an address."""

    def __init__(self, watched: WatchedCluster, *, bus: str | None, denied: Denied = dict) -> None:
        """``denied`` answers what may not be done, by operation, with the reason in words."""
        self._watched = watched
        self._bus = bus
        self._denied = denied
        self._session: OperationSession | None = None
        is_acting = watched.bootstrap is not None
        self.moves = Moves(self._client if is_acting else None, watched)

    @property
    def session(self) -> OperationSession:
        """The session that acts.

        Raises:
            ValueError: there is no cluster to act on.
        """
        if self._session is None:
            _ = self.bootstrap
            self._session = OperationSession(self._watched, bus=self._bus, denied=self._denied)
        return self._session

    @property
    def bootstrap(self) -> str:
        """The cluster.

        Raises:
            ValueError: there is none.
        """
        if self._watched.bootstrap is None:
            raise ValueError("no cluster to act on: start with --bootstrap HOST:PORT")
        return self._watched.bootstrap

    @property
    def cluster_id(self) -> str:
        """Id of the cluster, as its connection is bound to it; empty: it is not known."""
        where = self._watched.bootstrap
        return "" if where is None else settings_of(where).cluster_id or ""

    async def close(self) -> None:
        """End following the moves, and the connections."""
        await self.moves.close()
        if self._session is not None:
            await self._session.__aexit__()

    async def preview(self, asked: Operation) -> Previewed:
        """Preview of an operation, kept by its name."""
        return await self.session.preview(asked)

    def known_preview(self, kept: Mapping[str, Any] | None) -> Previewed | None:
        """The preview that a view keeps by its ``name``; None: there is none any more."""
        try:
            return self.session.kept_preview(str((kept or {}).get("name", "")))
        except (PreviewGoneError, ValueError):
            return None

    async def perform(self, name: str, *, typed: str = "", reason: str = "") -> Done:
        """Do what was previewed under that name."""
        previewed = self.session.kept_preview(name)
        return await self.session.perform(previewed, typed=typed, reason=reason)

    def records(self, topic: str) -> str:
        """The cluster, for who reads records of a topic there.

        :raises NoRightError: they may not be read by who asks.
        :raises ValueError: there is no cluster.
        """
        check_records(self._watched, topic)
        return self.bootstrap

    def reader(self, topic: str) -> RecordReader:
        """Reads records of a topic; an async context manager with connections of its own."""
        return RecordReader(self.records(topic))

    def follower(
        self, topic: str, partitions: Collection[int] | None, looking: Looking
    ) -> TopicFollower:
        """Follows records, with connections of its own."""
        return TopicFollower(self.records(topic), topic, partitions=partitions, looking=looking)

    def _client(self) -> MovesReader:
        return self.session.moves
