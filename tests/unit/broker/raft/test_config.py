import pytest

from broker.raft.config import QuorumConfig, Voter, parse_voters


def test_voters_as_kafka_writes_them() -> None:
    voters = parse_voters("101@127.0.0.1:19092, 102@[::1]:19093")
    assert voters == (
        Voter(id=101, host="127.0.0.1", port=19092),
        Voter(id=102, host="::1", port=19093),
    )
    config = QuorumConfig(node_id=102, voters=voters)
    assert config.other_ids == (101,)
    assert config.majority == 2


def test_timeouts_come_from_the_file() -> None:
    voters = parse_voters("1@h:1")
    config = QuorumConfig.from_properties({}, node_id=1, voters=voters)
    assert (config.election_timeout_ms, config.fetch_timeout_ms) == (300, 1_500)
    properties = {
        "controller.quorum.election.timeout.ms": "1000",
        "controller.quorum.fetch.timeout.ms": "2000",
    }
    config = QuorumConfig.from_properties(properties, node_id=1, voters=voters)
    assert (config.election_timeout_ms, config.fetch_timeout_ms) == (1_000, 2_000)
    assert config.check_quorum_ms == 3_000
    with pytest.raises(ValueError, match="soon"):
        QuorumConfig.from_properties(
            {"controller.quorum.fetch.timeout.ms": "soon"}, node_id=1, voters=voters
        )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("101", "'101' is not id@host:port"),
        ("x@h:1", "not id@host:port"),
        ("1@h:port", "not id@host:port"),
        ("1@:9", "not id@host:port"),
        ("1@h:1,1@h:2", "twice"),
    ],
)
def test_what_is_no_list_of_voters(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_voters(text)
