"""The quorum-state file: Kafka's JSON, written to a temporary file, flushed and renamed."""

import json
from pathlib import Path
from typing import Any, Final

from broker.log.disk.durable import replace_file
from broker.raft.vote import Vote

FILE_NAME: Final = "quorum-state"
NOBODY: Final = -1


class VoteFileError(Exception):
    """The quorum-state file cannot be read: voting without it could elect two leaders."""


class VoteFile:
    """Durable vote of one node (Kafka's FileQuorumStateStore, data_version 0)."""

    def __init__(self, directory: str | Path, *, voters: tuple[int, ...]) -> None:
        self._path = Path(directory) / FILE_NAME
        self._voters = voters

    def read(self) -> Vote:
        """The last vote, or Vote() when there is no file. Raises VoteFileError."""
        try:
            state = json.loads(self._path.read_text(encoding="utf-8"))
            return Vote(
                epoch=int(state["leaderEpoch"]),
                leader_id=_optional(state["leaderId"]),
                voted_id=_optional(state["votedId"]),
            )
        except FileNotFoundError:
            return Vote()
        except (ValueError, KeyError, TypeError) as error:
            raise VoteFileError(f"{self._path} is not a quorum state: {error}") from error
        except OSError as error:
            raise VoteFileError(f"{self._path} cannot be read: {error.strerror}") from error

    def write(self, vote: Vote) -> None:
        """Replace the file atomically; returns when it is on the disk."""
        content = json.dumps(self._document(vote)).encode()
        replace_file(str(self._path), content, is_forced=True)

    def _document(self, vote: Vote) -> dict[str, Any]:
        return {
            "clusterId": "",
            "leaderId": NOBODY if vote.leader_id is None else vote.leader_id,
            "leaderEpoch": vote.epoch,
            "votedId": NOBODY if vote.voted_id is None else vote.voted_id,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter} for voter in self._voters],
            "data_version": 0,
        }


def _optional(number: int) -> int | None:
    return None if number == NOBODY else int(number)
