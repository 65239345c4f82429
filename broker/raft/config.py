"""Voters, and their time-outs."""

from collections.abc import Mapping
from dataclasses import dataclass

from broker.host_name import bare_host


@dataclass(frozen=True, slots=True, kw_only=True)
class Voter:
    """A member of the quorum and its CONTROLLER listener."""

    id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumConfig:
    """Kafka's controller.quorum.* settings.

    Lower than Kafka's, so that a killed controller is replaced in well under two seconds:
    `fetch_timeout_ms` bounds how long a follower trusts a silent leader (Kafka: 2,000);
    elections are retried after `election_timeout_ms` plus up to as much again (Kafka: 1,000).
    A follower fetches at least every `fetch_wait_ms_max`, so one silent for `silence_ms` is
    looked after by the leader.
    """

    node_id: int
    voters: tuple[Voter, ...]
    election_timeout_ms: int = 300
    fetch_timeout_ms: int = 1_500
    fetch_wait_ms_max: int = 500
    fetch_bytes_max: int = 1024 * 1024
    retry_backoff_ms: int = 50
    retry_backoff_ms_max: int = 500
    check_quorum_ms: int = 2_250
    silence_ms: int = 750

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, str], *, node_id: int, voters: tuple[Voter, ...]
    ) -> "QuorumConfig":
        """Kafka's properties over our defaults. Raises ValueError for what is no number."""
        fetch_timeout_ms = int(properties.get("controller.quorum.fetch.timeout.ms", "1500"))
        return cls(
            node_id=node_id,
            voters=voters,
            election_timeout_ms=int(properties.get("controller.quorum.election.timeout.ms", "300")),
            fetch_timeout_ms=fetch_timeout_ms,
            check_quorum_ms=fetch_timeout_ms * 3 // 2,
        )

    @property
    def voter_ids(self) -> tuple[int, ...]:
        """All voters by id."""
        return tuple(sorted(voter.id for voter in self.voters))

    @property
    def is_voter(self) -> bool:
        """Whether this node votes; one that does not only follows (an observer, KIP-595)."""
        return any(voter.id == self.node_id for voter in self.voters)

    @property
    def other_ids(self) -> tuple[int, ...]:
        """All voters but this node."""
        return tuple(id_ for id_ in self.voter_ids if id_ != self.node_id)

    @property
    def majority(self) -> int:
        """How many voters decide."""
        return len(self.voters) // 2 + 1


def parse_voters(text: str) -> tuple[Voter, ...]:
    """Voters of `controller.quorum.voters`: "101@127.0.0.1:19092,102@…".

    Raises ValueError with what is wrong when an entry is not id@host:port or an id is doubled.
    """
    voters = tuple(_parse_voter(entry.strip()) for entry in text.split(",") if entry.strip())
    if not voters:
        raise ValueError("controller.quorum.voters is empty: expected id@host:port,…")
    if len({voter.id for voter in voters}) != len(voters):
        raise ValueError(f"controller.quorum.voters names an id twice: {text}")
    return voters


def _parse_voter(entry: str) -> Voter:
    id_, at, address = entry.partition("@")
    host, colon, port = address.rpartition(":")
    if not (at and colon and host and id_.isdecimal() and port.isdecimal()):
        raise ValueError(f"controller.quorum.voters: {entry!r} is not id@host:port")
    return Voter(id=int(id_), host=bare_host(host), port=int(port))
