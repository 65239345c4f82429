import json
from pathlib import Path

import pytest

from broker.raft.vote import Vote
from broker.raft.vote_file import VoteFile, VoteFileError


def test_first_start_has_no_vote(tmp_path: Path) -> None:
    assert VoteFile(tmp_path, voters=(1,)).read() == Vote()


def test_vote_survives_and_leaves_no_temporary_file(tmp_path: Path) -> None:
    store = VoteFile(tmp_path, voters=(1, 2, 3))
    store.write(Vote(epoch=7, voted_id=2))
    store.write(Vote(epoch=8, leader_id=3))
    assert VoteFile(tmp_path, voters=(1, 2, 3)).read() == Vote(epoch=8, leader_id=3)
    assert [path.name for path in tmp_path.iterdir()] == ["quorum-state"]
    document = json.loads((tmp_path / "quorum-state").read_text())
    assert document["leaderEpoch"] == 8
    assert document["votedId"] == -1
    assert document["data_version"] == 0


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"leaderEpoch": "x"}'])
def test_damaged_file_is_no_reason_to_vote_again(tmp_path: Path, content: str) -> None:
    (tmp_path / "quorum-state").write_text(content)
    with pytest.raises(VoteFileError, match="not a quorum state"):
        VoteFile(tmp_path, voters=(1,)).read()


def test_an_unreadable_file_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "quorum-state").mkdir()
    with pytest.raises(VoteFileError, match="cannot be read: Is a directory"):
        VoteFile(tmp_path, voters=(1,)).read()
