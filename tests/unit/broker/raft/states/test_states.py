"""One voter at a time; whole clusters are in tests/simulation."""

import pickle
import random
from dataclasses import replace

import pytest

from broker.raft.config import QuorumConfig, Voter
from broker.raft.errors import (
    CommittedTruncationError,
    IllegalTransitionError,
    NotLeaderError,
)
from broker.raft.events import (
    ConnectionLost,
    Effect,
    Event,
    FlushBegun,
    FlushDue,
    Flushed,
    LeaderChanged,
    Reply,
    RequestFailed,
    RequestReceived,
    ResignRequested,
    ResponseReceived,
    Send,
    Tick,
    VoteChanged,
    VoterGone,
    VoteWritten,
)
from broker.raft.messages import (
    BeginEpochRequest,
    EndEpochRequest,
    EpochEnd,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    Request,
    Response,
    RpcError,
    VoteRequest,
    VoteResponse,
)
from broker.raft.snapshot_id import SnapshotId
from broker.raft.states.backoff import Backoff
from broker.raft.states.leader import Leader
from broker.raft.states.progress import OBSERVER_SILENCE_MS
from broker.raft.states.transition import BecomeLeader
from broker.raft.vote import Vote
from broker.raft.voter import RaftCore
from tests.simulation.raft_cluster import MemoryVotes
from tests.simulation.raft_log import Entry, MemoryLog


class Voter101:
    """Voter 101 of 101, 102, 103 (or another node beside them), with its clock in hand."""

    def __init__(
        self, *, vote: Vote | None = None, entries: list[Entry] | None = None, node_id: int = 101
    ) -> None:
        self.votes = MemoryVotes()
        self.votes.vote = vote or Vote()
        self.log = MemoryLog()
        self.log.entries = list(entries or [])
        voters = tuple(Voter(id=id_, host="h", port=id_) for id_ in (101, 102, 103))
        self.core = RaftCore(
            config=QuorumConfig(node_id=node_id, voters=voters),
            log=self.log,
            vote=self.votes.read(),
            dice=random.Random(1),
            now_ms=0,
        )

    def tick(self, after_ms: int = 0) -> tuple[Effect, ...]:
        return self.handle(Tick(), after_ms)

    def handle(self, event: Event, after_ms: int = 0) -> tuple[Effect, ...]:
        """Whatever comes of it on a disk that takes no time."""
        effects = self.core.handle(event, self.core.now_ms + after_ms)
        for effect in effects:
            if isinstance(effect, VoteChanged):
                self.votes.write(effect.vote)
                effects += self.core.handle(VoteWritten(vote=effect.vote), self.core.now_ms)
        return effects

    def ask(self, request: Request) -> Response:
        """What it answers at once."""
        effects = self.handle(RequestReceived(token=1, request=request))
        (reply,) = [effect for effect in effects if isinstance(effect, Reply)]
        return reply.response

    def answer(self, peer: int, response: Response, request: Request) -> tuple[Effect, ...]:
        event = ResponseReceived(peer=peer, request=request, response=response)
        return self.handle(event)

    def begin_flush(self) -> Flushed:
        """What tells the voter that its disk is done."""
        effects = self.core.handle(FlushDue(), self.core.now_ms)
        (begun,) = [effect for effect in effects if isinstance(effect, FlushBegun)]
        return Flushed(flush=begun.flush)

    def flush(self) -> tuple[Effect, ...]:
        return self.core.handle(self.begin_flush(), self.core.now_ms)

    def flush_again(self) -> tuple[Effect, ...]:
        """Where nothing is left to do."""
        return self.core.handle(FlushDue(), self.core.now_ms)

    def lead(self) -> RaftCore:
        """Win an election."""
        for pre_vote in (True, False):
            effects = self.tick(1_000) if pre_vote else self.last
            (request, _) = sent(effects, VoteRequest)
            assert request.pre_vote is pre_vote
            granted = VoteResponse(epoch=request.epoch, leader_id=None, vote_granted=True)
            self.last = self.answer(102, granted, request)
        assert isinstance(self.core.state, Leader)
        return self.core

    last: tuple[Effect, ...] = ()


def sent(effects: tuple[Effect, ...], kind: type[VoteRequest]) -> list[VoteRequest]:
    return [e.request for e in effects if isinstance(e, Send) and isinstance(e.request, kind)]


def vote(epoch: int, *, pre_vote: bool = False, candidate: int = 102, end: int = 0) -> VoteRequest:
    return VoteRequest(
        candidate_id=candidate, epoch=epoch, last_epoch=0, last_offset=end, pre_vote=pre_vote
    )


def fetch(epoch: int, offset: int, *, peer: int = 102, last_epoch: int = 1) -> FetchRequest:
    return FetchRequest(
        replica_id=peer,
        epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        high_watermark=0,
        wait_ms_max=0,
    )


def granted(response: Response) -> bool:
    assert isinstance(response, VoteResponse)
    return response.vote_granted


def test_one_vote_an_epoch_and_it_is_durable() -> None:
    voter = Voter101()
    assert granted(voter.ask(vote(1, candidate=102)))
    assert voter.votes.vote == Vote(epoch=1, voted_id=102)
    assert not granted(voter.ask(vote(1, candidate=103)))
    assert granted(voter.ask(vote(1, candidate=102))), "the same answer to a repeated request"


def test_nothing_is_said_before_the_vote_is_durable() -> None:
    voter = Voter101()
    asked = RequestReceived(token=1, request=vote(1, candidate=102))
    effects = voter.core.handle(asked, 0)
    assert not [effect for effect in effects if isinstance(effect, Send | Reply)]
    seen, voted = [effect for effect in effects if isinstance(effect, VoteChanged)]
    assert (seen.vote, voted.vote) == (Vote(epoch=1), Vote(epoch=1, voted_id=102))
    repeated = RequestReceived(token=2, request=vote(1, candidate=103))
    assert voter.core.handle(repeated, 0) == ()
    assert voter.core.handle(VoteWritten(vote=seen.vote), 0) == ()
    said = voter.core.handle(VoteWritten(vote=voted.vote), 0)
    answers = [effect for effect in said if isinstance(effect, Reply)]
    assert [(each.token, granted(each.response)) for each in answers] == [(1, True), (2, False)]


def test_a_disk_that_hangs_holds_one_request_to_each_voter_back() -> None:
    voter = Voter101()
    asked = RequestReceived(token=1, request=vote(1, candidate=102))
    (written,) = [e for e in voter.core.handle(asked, 0)[1:] if isinstance(e, VoteChanged)]
    for round_ in range(1, 200):
        assert voter.core.handle(Tick(), round_ * 1_000) == ()
    said = voter.core.handle(VoteWritten(vote=written.vote), 199_000)
    requests = [effect for effect in said if isinstance(effect, Send)]
    assert sorted(each.peer for each in requests) == [102, 103]
    assert [each.token for each in said if isinstance(each, Reply)] == [1]


def test_promise_costs_no_vote() -> None:
    voter = Voter101()
    assert granted(voter.ask(vote(0, pre_vote=True, candidate=102)))
    assert granted(voter.ask(vote(0, pre_vote=True, candidate=103)))
    assert voter.votes.vote == Vote()


def test_candidate_with_a_shorter_log_gets_nothing() -> None:
    voter = Voter101(entries=[Entry(1, b"a")])
    assert not granted(voter.ask(vote(2)))
    assert not granted(voter.ask(vote(2, pre_vote=True)))
    longer = VoteRequest(candidate_id=102, epoch=2, last_epoch=1, last_offset=1, pre_vote=False)
    assert granted(voter.ask(longer))


def test_old_epochs_are_fenced() -> None:
    voter = Voter101(vote=Vote(epoch=5))
    refused = voter.ask(vote(4))
    assert isinstance(refused, VoteResponse)
    assert (refused.error, refused.epoch) == (RpcError.FENCED_LEADER_EPOCH, 5)
    begin = voter.ask(BeginEpochRequest(leader_id=102, epoch=4))
    assert begin.error is RpcError.FENCED_LEADER_EPOCH
    end = voter.ask(EndEpochRequest(leader_id=102, epoch=4, preferred_successors=()))
    assert end.error is RpcError.FENCED_LEADER_EPOCH


def test_restart_remembers_the_vote() -> None:
    voter = Voter101(vote=Vote(epoch=5, voted_id=103))
    assert not granted(voter.ask(vote(5, candidate=102)))
    assert granted(voter.ask(vote(5, candidate=103)))


def test_epoch_of_the_log_counts_when_the_vote_file_is_older() -> None:
    assert Voter101(vote=Vote(epoch=1), entries=[Entry(4, b"a")]).core.epoch == 4


def test_pre_vote_raises_no_epoch_and_the_candidacy_does() -> None:
    voter = Voter101()
    effects = voter.tick(1_000)
    assert [request.pre_vote for request in sent(effects, VoteRequest)] == [True, True]
    assert voter.core.epoch == 0
    promise = VoteResponse(epoch=0, leader_id=None, vote_granted=True)
    effects = voter.answer(102, promise, sent(effects, VoteRequest)[0])
    assert [request.pre_vote for request in sent(effects, VoteRequest)] == [False, False]
    assert voter.votes.vote == Vote(epoch=1, voted_id=101)


def test_leader_commits_only_with_a_record_of_its_own_epoch() -> None:
    voter = Voter101(entries=[Entry(1, b"old")], vote=Vote(epoch=1))
    core = voter.lead()
    voter.flush()
    voter.ask(fetch(2, 1))
    assert core.high_watermark == 0, "a majority has the old record, but that does not count"
    voter.ask(fetch(2, 2, last_epoch=2))
    assert core.high_watermark == 2


def test_unflushed_records_of_the_leader_do_not_count() -> None:
    voter = Voter101()
    core = voter.lead()
    voter.ask(fetch(1, 1))
    assert core.high_watermark == 0
    voter.flush()
    assert core.high_watermark == 1


def test_what_is_appended_while_the_disk_works_does_not_count_yet() -> None:
    voter = Voter101()
    core = voter.lead()
    first = voter.begin_flush()
    core.append([b"a"], core.now_ms)
    voter.ask(fetch(1, 2))
    core.handle(first, core.now_ms)
    assert core.high_watermark == 1
    voter.flush()
    assert core.high_watermark == 2


def test_leader_says_where_the_logs_part() -> None:
    voter = Voter101(entries=[Entry(1, b"a"), Entry(3, b"b")], vote=Vote(epoch=3))
    core = voter.lead()
    response = voter.ask(fetch(core.epoch, 5, last_epoch=2))
    assert isinstance(response, FetchResponse)
    assert response.diverging == EpochEnd(epoch=1, end_offset=1)
    assert core.high_watermark == 0, "a diverging fetch acknowledges nothing"


def test_only_leaders_append() -> None:
    voter = Voter101()
    with pytest.raises(NotLeaderError):
        voter.core.append([b"a"], 0)
    voter.lead()
    unknown = voter.ask(fetch(9, 0))
    assert unknown.error is RpcError.UNKNOWN_LEADER_EPOCH


def test_an_observer_fetches_and_acknowledges_nothing() -> None:
    voter = Voter101()
    core = voter.lead()
    core.append([b"a"], core.now_ms)
    voter.flush()
    answer = voter.ask(fetch(1, 0, peer=999))
    assert isinstance(answer, FetchResponse)
    assert answer.error is RpcError.NONE
    assert answer.records
    voter.handle(RequestReceived(token=2, request=fetch(1, 2, peer=999)))
    voter.handle(RequestReceived(token=3, request=fetch(1, 2, peer=998)))
    assert core.high_watermark == 0, "no voter has fetched"
    assert isinstance(core.state, Leader)
    observers = core.state.observers.known(core.now_ms)
    assert {id_: it.end_offset for id_, it in observers.items()} == {999: 2, 998: 2}
    voter.handle(RequestReceived(token=4, request=fetch(1, 2, peer=102)))
    assert core.high_watermark == 2


def test_an_observer_that_is_silent_for_long_is_forgotten() -> None:
    core = Voter101().lead()
    ask = RequestReceived(token=1, request=fetch(1, 0, peer=999))
    core.handle(ask, core.now_ms)
    state = core.state
    assert isinstance(state, Leader)
    assert set(state.observers.known(core.now_ms + OBSERVER_SILENCE_MS)) == {999}
    assert set(state.observers.known(core.now_ms + OBSERVER_SILENCE_MS + 1)) == set()


def asked(effects: tuple[Effect, ...]) -> list[tuple[int, FetchRequest]]:
    """Whom it fetches from."""
    return [
        (e.peer, e.request)
        for e in effects
        if isinstance(e, Send) and isinstance(e.request, FetchRequest)
    ]


def test_an_observer_asks_every_voter_until_one_knows_the_leader() -> None:
    observer = Voter101(node_id=999)
    found: list[int] = []
    for _ in range(3):
        ((peer, request),) = asked(observer.tick(300))
        assert request.wait_ms_max == 0
        found.append(peer)
        knows_none = FetchResponse(epoch=0, leader_id=None, error=RpcError.NOT_LEADER_OR_FOLLOWER)
        observer.answer(peer, knows_none, request)
    assert sorted(found) == [101, 102, 103]
    ((peer, request),) = asked(observer.tick(50))
    knows = FetchResponse(epoch=4, leader_id=102, error=RpcError.FENCED_LEADER_EPOCH)
    ((leader, request),) = asked(observer.answer(peer, knows, request))
    assert (leader, request.epoch, request.wait_ms_max) == (102, 4, 500)
    assert observer.votes.vote == Vote(epoch=4, leader_id=102)


def test_an_observer_believes_a_silent_leader_only_itself() -> None:
    """The others may not have noticed yet; they are asked first."""
    observer = Voter101(node_id=999, vote=Vote(epoch=4))
    ((peer, request),) = asked(observer.tick())
    knows = FetchResponse(epoch=4, leader_id=102, error=RpcError.NOT_LEADER_OR_FOLLOWER)
    observer.answer(peer, knows, request)
    assert observer.core.leader_id == 102
    found = []
    effects = observer.tick(observer.core.config.fetch_timeout_ms)
    for _ in range(2):
        ((peer, request),) = asked(effects)
        found.append(peer)
        assert asked(observer.answer(peer, knows, request)) == []
        assert observer.core.leader_id is None
        effects = observer.tick(50)
    assert sorted(found) == [101, 103]
    ((peer, request),) = asked(effects)
    assert peer == 102
    itself = FetchResponse(epoch=4, leader_id=102)
    observer.answer(peer, itself, request)
    assert observer.core.leader_id == 102


def test_an_observer_doubts_no_leader_for_ever() -> None:
    observer = Voter101(node_id=999, vote=Vote(epoch=4))
    ((peer, request),) = asked(observer.tick())
    knows = FetchResponse(epoch=4, leader_id=102, error=RpcError.NOT_LEADER_OR_FOLLOWER)
    observer.answer(peer, knows, request)
    observer.tick(observer.core.config.fetch_timeout_ms)
    ((peer, request),) = asked(observer.tick(observer.core.config.fetch_timeout_ms))
    assert peer != 102
    observer.answer(peer, knows, request)
    assert observer.core.leader_id == 102


def test_an_observer_keeps_a_vote_that_it_gave_as_a_voter() -> None:
    observer = Voter101(node_id=999, vote=Vote(epoch=4, voted_id=103))
    ((peer, request),) = asked(observer.tick())
    knows = FetchResponse(epoch=4, leader_id=103, error=RpcError.NOT_LEADER_OR_FOLLOWER)
    observer.answer(peer, knows, request)
    observer.tick(observer.core.config.fetch_timeout_ms)
    assert observer.core.voted_id == 103
    answer = observer.ask(
        VoteRequest(candidate_id=102, epoch=5, last_epoch=9, last_offset=99, pre_vote=False)
    )
    assert isinstance(answer, VoteResponse)
    assert (answer.error, answer.vote_granted) == (RpcError.INCONSISTENT_VOTER_SET, False)


def test_nobody_votes_for_an_observer() -> None:
    voter = Voter101()
    request = VoteRequest(candidate_id=999, epoch=7, last_epoch=7, last_offset=99, pre_vote=False)
    answer = voter.ask(request)
    assert isinstance(answer, VoteResponse)
    assert answer.error is RpcError.INCONSISTENT_VOTER_SET
    assert not answer.vote_granted
    assert voter.core.epoch == 0, "its epoch disturbs nobody"


LAST_EPOCH = 2**31 - 1
UNSOUND: list[tuple[Request, RpcError]] = [
    (vote(LAST_EPOCH), RpcError.INVALID_REQUEST),
    (vote(LAST_EPOCH, pre_vote=True), RpcError.INVALID_REQUEST),
    (vote(5, end=-1), RpcError.INVALID_REQUEST),
    (vote(5, candidate=101), RpcError.INVALID_REQUEST),
    (replace(vote(5), last_epoch=5), RpcError.INVALID_REQUEST),
    (replace(vote(5), last_epoch=-1), RpcError.INVALID_REQUEST),
    (replace(vote(5, pre_vote=True), last_epoch=6), RpcError.INVALID_REQUEST),
    (BeginEpochRequest(leader_id=102, epoch=LAST_EPOCH), RpcError.INVALID_REQUEST),
    (BeginEpochRequest(leader_id=101, epoch=5), RpcError.INVALID_REQUEST),
    (BeginEpochRequest(leader_id=999, epoch=5), RpcError.INCONSISTENT_VOTER_SET),
    (
        EndEpochRequest(leader_id=102, epoch=LAST_EPOCH, preferred_successors=()),
        RpcError.INVALID_REQUEST,
    ),
    (
        EndEpochRequest(leader_id=-1, epoch=5, preferred_successors=()),
        RpcError.INCONSISTENT_VOTER_SET,
    ),
    (fetch(1, -1), RpcError.INVALID_REQUEST),
    (fetch(1, 0, last_epoch=-1), RpcError.INVALID_REQUEST),
    (fetch(1, 0, last_epoch=2), RpcError.INVALID_REQUEST),
    (fetch(1, 0, peer=-1), RpcError.INVALID_REQUEST),
    (fetch(1, 0, peer=101), RpcError.INVALID_REQUEST),
    (
        FetchSnapshotRequest(
            replica_id=102,
            epoch=1,
            snapshot=SnapshotId(end_offset=-1, epoch=1),
            position=0,
            bytes_max=1,
        ),
        RpcError.INVALID_REQUEST,
    ),
]


@pytest.mark.parametrize("is_leader", [False, True])
@pytest.mark.parametrize(("request_", "error"), UNSOUND)
def test_what_no_voter_says_is_refused_and_changes_nothing(
    request_: Request, error: RpcError, is_leader: bool
) -> None:
    voter = Voter101()
    if is_leader:
        voter.lead()
    core = voter.core
    before = core.vote, core.leader_id, core.high_watermark
    assert voter.ask(request_).error is error
    assert (core.vote, core.leader_id, core.high_watermark) == before
    assert voter.ask(vote(core.epoch + 1, end=9)).error is RpcError.NONE


def test_elections_go_on_beyond_the_epochs_that_are_free() -> None:
    voter = Voter101(vote=Vote(epoch=2**30 + 5))
    assert voter.ask(vote(2**30 + 2_000)).error is RpcError.INVALID_REQUEST
    assert voter.ask(vote(2**30 + 6)).error is RpcError.NONE
    assert voter.core.epoch == 2**30 + 6


def test_a_later_epoch_than_there_can_be_is_not_learned_from_an_answer() -> None:
    voter = Voter101()
    (request, _) = sent(voter.tick(1_000), VoteRequest)
    voter.answer(102, VoteResponse(epoch=LAST_EPOCH, leader_id=None, vote_granted=False), request)
    assert voter.core.epoch == 0


def test_observers_are_bounded() -> None:
    voter = Voter101()
    core = voter.lead()
    for id_ in range(1_000, 4_000):
        voter.handle(RequestReceived(token=id_, request=fetch(1, 0, peer=id_)))
    assert isinstance(core.state, Leader)
    known = core.state.observers.known(core.now_ms)
    assert sorted(known) == list(range(3_000, 4_000))


def test_silent_voter_with_a_closed_port_is_reported() -> None:
    core = Voter101().lead()
    announcement = BeginEpochRequest(leader_id=101, epoch=1)
    refused = RequestFailed(peer=103, request=announcement, is_refused=True)
    assert VoterGone(voter_id=103) in core.handle(refused, core.now_ms)
    core.handle(RequestReceived(token=1, request=fetch(1, 1, peer=103)), core.now_ms)
    assert VoterGone(voter_id=103) not in core.handle(refused, core.now_ms)
    later_ms = core.now_ms + core.config.silence_ms
    assert Send(peer=103, request=announcement) in core.handle(Tick(), later_ms)
    assert VoterGone(voter_id=103) in core.handle(refused, later_ms)


def test_a_voter_whose_connection_ended_is_asked_at_once_whether_it_lives() -> None:
    core = Voter101().lead()
    announcement = BeginEpochRequest(leader_id=101, epoch=1)
    core.handle(RequestReceived(token=1, request=fetch(1, 1, peer=103)), core.now_ms)
    ended = ConnectionLost(peer=103)
    assert Send(peer=103, request=announcement) in core.handle(ended, core.now_ms)
    refused = RequestFailed(peer=103, request=announcement, is_refused=True)
    assert VoterGone(voter_id=103) in core.handle(refused, core.now_ms)


def follower(leader: int = 102, **log: object) -> tuple[Voter101, FetchRequest]:
    """Voter 101 following, and its fetch in flight."""
    voter = Voter101(**log)  # type: ignore[arg-type]
    begin = BeginEpochRequest(leader_id=leader, epoch=5)
    effects = voter.handle(RequestReceived(token=1, request=begin))
    assert LeaderChanged(epoch=5, leader_id=leader) in effects
    (request,) = [
        e.request for e in effects if isinstance(e, Send) and isinstance(e.request, FetchRequest)
    ]
    return voter, request


def test_follower_acknowledges_what_its_disk_has() -> None:
    voter, request = follower()
    records = pickle.dumps((0, [Entry(1, b"a")]))
    got = FetchResponse(epoch=5, leader_id=102, high_watermark=0, records=records)
    effects = voter.answer(102, got, request)
    assert not [effect for effect in effects if isinstance(effect, Send)]
    voter.tick(400)
    (again,) = [effect.request for effect in voter.flush() if isinstance(effect, Send)]
    assert isinstance(again, FetchRequest)
    assert again.fetch_offset == 1


def test_follower_of_another_leader_asks_once_its_disk_has_all() -> None:
    voter, request = follower()
    records = pickle.dumps((0, [Entry(1, b"a")]))
    voter.answer(102, FetchResponse(epoch=5, leader_id=102, records=records), request)
    before = voter.begin_flush()
    announced = RequestReceived(token=1, request=BeginEpochRequest(leader_id=103, epoch=6))
    assert not [effect for effect in voter.handle(announced) if isinstance(effect, Send)]
    effects = voter.core.handle(before, voter.core.now_ms)
    (asked,) = [effect for effect in effects if isinstance(effect, Send)]
    assert isinstance(asked.request, FetchRequest)
    assert (asked.peer, asked.request.fetch_offset) == (103, voter.log.flushed_count)
    assert [effect for effect in voter.flush_again() if isinstance(effect, Send)] == []


def test_a_leader_that_follows_another_acknowledges_what_its_disk_has() -> None:
    voter = Voter101()
    core = voter.lead()
    voter.flush()
    first = core.append([b"a"], core.now_ms)
    begun = voter.begin_flush()
    core.append([b"b"], core.now_ms)
    begin = BeginEpochRequest(leader_id=102, epoch=core.epoch + 1)
    effects = voter.handle(RequestReceived(token=1, request=begin))
    effects += core.handle(begun, core.now_ms)
    assert not [effect for effect in effects if isinstance(effect, Send)], "b may still be lost"
    (asked,) = [effect.request for effect in voter.flush() if isinstance(effect, Send)]
    assert isinstance(asked, FetchRequest)
    assert asked.fetch_offset == voter.log.flushed_count == first[0] + 2


def test_follower_truncates_to_the_common_prefix() -> None:
    voter, request = follower(entries=[Entry(1, b"a"), Entry(2, b"b"), Entry(2, b"c")])
    parted = FetchResponse(
        epoch=5, leader_id=102, high_watermark=0, diverging=EpochEnd(epoch=1, end_offset=4)
    )
    voter.answer(102, parted, request)
    assert voter.log.end_offset == 1


def test_what_is_left_after_a_cut_is_not_yet_known_to_be_committed() -> None:
    """The leader has nothing of our epoch 2; that is found out one question later."""
    entries = [Entry(1, b"a"), Entry(2, b"b"), Entry(2, b"c"), Entry(4, b"d")]
    voter, request = follower(entries=entries)
    assert (request.fetch_offset, request.last_fetched_epoch) == (4, 4)
    parts = FetchResponse(
        epoch=5, leader_id=102, high_watermark=9, diverging=EpochEnd(epoch=3, end_offset=9)
    )
    ((_, request),) = asked(voter.answer(102, parts, request))
    assert (request.fetch_offset, request.last_fetched_epoch) == (3, 2)
    assert voter.core.high_watermark == 0
    parts = replace(parts, diverging=EpochEnd(epoch=1, end_offset=1))
    ((_, request),) = asked(voter.answer(102, parts, request))
    assert (request.fetch_offset, voter.core.high_watermark) == (1, 0)
    voter.answer(102, FetchResponse(epoch=5, leader_id=102, high_watermark=9), request)
    assert voter.core.high_watermark == 1


def test_follower_never_drops_committed_records() -> None:
    voter, request = follower(entries=[Entry(1, b"a"), Entry(1, b"b")])
    known = FetchResponse(epoch=5, leader_id=102, high_watermark=2)
    effects = voter.answer(102, known, request)
    (again,) = [e.request for e in effects if isinstance(e, Send)]
    parted = FetchResponse(
        epoch=5, leader_id=102, high_watermark=2, diverging=EpochEnd(epoch=0, end_offset=0)
    )
    with pytest.raises(CommittedTruncationError, match="below the high watermark 2"):
        voter.answer(102, parted, again)


def test_follower_with_a_live_leader_promises_nothing() -> None:
    voter, request = follower()
    voter.answer(102, FetchResponse(epoch=5, leader_id=102, high_watermark=0), request)
    assert not granted(voter.ask(vote(5, pre_vote=True, candidate=103)))
    voter.core.now_ms += 1_000
    assert granted(voter.ask(vote(5, pre_vote=True, candidate=103)))


def test_refused_connection_shortens_the_trust_in_the_leader() -> None:
    voter, request = follower()
    voter.core.handle(RequestFailed(peer=102, request=request, is_refused=True), 0)
    voter.tick(200)
    assert voter.core.state.name == "prospective"


def test_follower_of_a_leader_that_resigned_waits_for_the_next() -> None:
    voter, request = follower()
    gone = FetchResponse(epoch=5, leader_id=None, error=RpcError.NOT_LEADER_OR_FOLLOWER)
    voter.answer(102, gone, request)
    assert voter.core.state.name == "unattached"


def test_first_successor_stands_at_once() -> None:
    voter, _ = follower()
    voter.ask(EndEpochRequest(leader_id=102, epoch=5, preferred_successors=(101, 103)))
    assert voter.core.state.name == "prospective"


def test_leader_that_stops_names_the_most_caught_up_first() -> None:
    voter = Voter101()
    core = voter.lead()
    voter.ask(fetch(1, 1, peer=103))
    effects = core.handle(ResignRequested(), core.now_ms)
    farewells = [e.request for e in effects if isinstance(e, Send)]
    assert all(isinstance(f, EndEpochRequest) for f in farewells)
    assert {f.preferred_successors for f in farewells if isinstance(f, EndEpochRequest)} == {
        (103, 102)
    }
    assert core.state.name == "resigned"


def test_stale_answers_change_nothing() -> None:
    voter, request = follower()
    voter.answer(102, FetchResponse(epoch=5, leader_id=102, high_watermark=0), request)
    assert voter.answer(102, FetchResponse(epoch=5, leader_id=102), request) == ()
    assert voter.answer(103, VoteResponse(epoch=4, leader_id=103, vote_granted=True), vote(4)) == ()
    assert voter.core.leader_id == 102


def test_illegal_transition_tells_its_story() -> None:
    voter, _ = follower()
    with pytest.raises(IllegalTransitionError, match=r"unattached -> follower.*follower -> leader"):
        voter.core.apply(BecomeLeader())


def test_backoff_is_quick_at_first() -> None:
    backoff = Backoff(first_ms=50, max_ms=500)
    assert [backoff.next_ms() for _ in range(9)] == [50, 50, 50, 50, 100, 200, 400, 500, 500]
    backoff.reset()
    assert backoff.next_ms() == 50
