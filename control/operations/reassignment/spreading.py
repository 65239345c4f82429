"""Spreading a move over time, so that few of what producers send wait for its ends. Pure.

As a partition ends its move it may hold producers up, once and by chance; a client waits until it
turns to a new leader. A dozen such waits are too few for a p99 in five minutes, and all of it in
ten seconds. So partitions that are written to are asked for
one after the other, each topic by itself: no sooner than what may wait because of the one before is
WAITING of all that was written to the topic meanwhile. What nobody writes to waits for nobody.
Measured in docs/decisions/0013.

Worked example: producers write to twelve partitions of a topic alike, whose leaders are four
brokers, so that a quarter of it goes to each; each has one follower, who waits a second. One that
loses a replica holds up 0.3 · 1 s · 1/4 = 0.075 s of what is written, in doubt, and the next is
asked for 15 s after it: all twelve within 165 s. With two followers it is twice that. Where the
leader goes as well, 0.12 s · 1/12 is sure: 2 s more.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from control.model.ids import TopicPartition
from control.model.units import duration_text
from planner.proposal import PartitionChange
from planner.waves import Wave

WAITING: Final = 0.005
"""Of what is written, so that a p99 shows nothing of it."""
IN_DOUBT: Final = 0.3
"""Of each follower's wait: of ends 0.1 to 0.2 a follower had one, and they come by chance."""
TO_NEW_LEADER_S: Final = 0.12
"""After which clients have found it (retry.backoff.ms, 100 ms)."""
USUAL_BACKOFF_MS: Final = 1000
"""Kafka's replica.fetch.backoff.ms, of brokers that do not tell."""
TOLD_FROM_S: Final = 5.0
"""So long that an operator would wonder what a move waits for."""
LATE_S: Final = 2.0
"""So much later than may be something was asked for without the next being later as well."""
NOT_KNOWN: Final = "not spread: the produce rate is unknown"

Key = TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """Traffic of producers to the topics that move, and the backoff of their brokers."""

    produced: Mapping[Key, float] = field(default_factory=dict)
    """Bytes per second, of all their partitions; absent where not known."""
    leaders: Mapping[Key, int] = field(default_factory=dict)
    backoff_ms: Mapping[int, int] = field(default_factory=dict)
    """``replica.fetch.backoff.ms`` by broker."""

    def shares(self) -> dict[Key, float]:
        """Share of each partition in its topic's traffic: half as measured (one second only), half
        alike for all. Topics that nobody writes to are absent."""
        whole: dict[str, float] = {}
        count: dict[str, int] = {}
        for key, rate in self.produced.items():
            whole[key.topic] = whole.get(key.topic, 0.0) + rate
            count[key.topic] = count.get(key.topic, 0) + 1
        return {
            key: (rate / whole[key.topic] + 1 / count[key.topic]) / 2
            for key, rate in self.produced.items()
            if whole[key.topic] > 0
        }


@dataclass(slots=True)
class Turns:
    """Times at which each topic may submit its next partition; `now_s` is everywhere the same
    monotonic clock in seconds."""

    _open_s: dict[str, float] = field(default_factory=dict)

    def opens_s(self, topic: str, gap_s: float) -> float:
        """From when on one of the topic may be asked for; one after which nobody waits needs no
        turn."""
        return self._open_s.get(topic, 0.0) if gap_s else 0.0

    def take(self, topic: str, gap_s: float, now_s: float) -> bool:
        """Whether one may be asked for now; who is told so asks."""
        opens_s = self.opens_s(topic, gap_s)
        if opens_s > now_s:
            return False
        if gap_s:
            is_first = topic not in self._open_s
            self._open_s[topic] = gap_s + (now_s if is_first else max(opens_s, now_s - LATE_S))
        return True

    def take_all(self, gaps: Iterable[tuple[str, float]], now_s: float) -> float:
        """All of them in their order, each as soon as may be; when the last of them may."""
        last_s = now_s
        for topic, gap_s in gaps:
            if gap_s:
                at_s = max(self.opens_s(topic, gap_s), now_s)
                self._open_s[topic] = at_s + gap_s
                last_s = max(last_s, at_s)
        return last_s

    def left_s(self, gaps: Iterable[tuple[str, float]], now_s: float) -> float:
        """Seconds until the last of these may be asked for."""
        return Turns(dict(self._open_s)).take_all(gaps, now_s) - now_s


class Pace:
    """How long what comes after it in its topic waits for a partition; all times by `scale`."""

    def __init__(self, writing: Writing, *, scale: float = 1.0) -> None:
        self._writing = writing
        self._scale = scale
        self._share = writing.shares()
        self._at_leader: dict[tuple[str, int], float] = {}
        for key, share in self._share.items():
            where = (key.topic, writing.leaders.get(key, -1))
            self._at_leader[where] = self._at_leader.get(where, 0.0) + share

    @classmethod
    def within(
        cls, writing: Writing, waves: Sequence[Wave], within_s: float, *, elects: bool = True
    ) -> "tuple[Pace, SpreadEstimate]":
        """That of a run, at most so many seconds in all; and what it comes to."""
        wished = cls(writing)
        wished_s = wished.estimate(waves, elects=elects).seconds
        scale = min(within_s / wished_s, 1.0) if wished_s else float(within_s > 0)
        pace = cls(writing, scale=scale)
        return pace, replace(pace.estimate(waves, elects=elects), wished_s=wished_s)

    def led_by(self, leaders: Mapping[Key, int]) -> "Pace":
        """The same once these lead."""
        return Pace(replace(self._writing, leaders=leaders), scale=self._scale)

    def estimate(self, waves: Sequence[Wave], *, elects: bool = True) -> "SpreadEstimate":
        """Wave after wave: a wave begins when the one before it has arrived."""
        turns, now_s, waves_s = Turns(), 0.0, []
        for wave in waves:
            last_s = turns.take_all([(c.topic, self.after_end(c)) for c in wave], now_s)
            waves_s.append(last_s - now_s)
            now_s = last_s
        changes = [change for wave in waves for change in wave] if elects else []
        elections = [(c.topic, self.after_election(c)) for c in changes]
        elected_s = turns.take_all(elections, now_s) - now_s
        return SpreadEstimate(waves_s=tuple(waves_s), elected_s=elected_s)

    def after_end(self, change: PartitionChange) -> float:
        """Seconds after it was asked for, as it ends soon after."""
        if not change.removing:
            return 0.0
        has_to_go = self._writing.leaders.get(change.key) in change.removing
        leader_s = TO_NEW_LEADER_S * self._share.get(change.key, 0.0) if has_to_go else 0.0
        return self._scale * (self._epoch_s(change) + leader_s) / WAITING

    def after_election(self, change: PartitionChange) -> float:
        """Seconds after its first replica was elected; nothing where that leads without."""
        leader = self._writing.leaders.get(change.key)
        if change.after[:1] == (leader,) or leader not in change.after:
            return 0.0
        return self.after_electing(change)

    def after_electing(self, change: PartitionChange) -> float:
        """The same, of one that has to be elected."""
        leader_s = TO_NEW_LEADER_S * self._share.get(change.key, 0.0)
        return self._scale * (self._epoch_s(change) + leader_s) / WAITING

    def _epoch_s(self, change: PartitionChange) -> float:
        leader, told = self._writing.leaders.get(change.key, -1), self._writing.backoff_ms
        leads = leader if leader in change.after else next(iter(change.after), -1)
        follow = [broker for broker in change.after if broker != leads]
        waits_ms = max((told.get(broker, USUAL_BACKOFF_MS) for broker in follow), default=0)
        waits_s = min(IN_DOUBT * len(follow), 1.0) * waits_ms / 1000
        return waits_s * self._at_leader.get((change.topic, leader), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadEstimate:
    """Estimated seconds of a move that has not begun, where nothing else takes longer."""

    waves_s: tuple[float, ...] = ()
    """Of each wave until its last is asked for."""
    elected_s: float = 0.0
    """From the first election to the last."""
    wished_s: float = 0.0
    """All of it, had it been allowed to take any time."""
    is_known: bool = True
    """Whether what producers write is known."""

    @property
    def seconds(self) -> float:
        """All of it."""
        return sum(self.waves_s) + self.elected_s

    @property
    def words(self) -> str:
        """Empty where it is not worth a word."""
        if not self.is_known:
            return NOT_KNOWN
        if self.seconds < TOLD_FROM_S:
            return ""
        over, wished = (duration_text(s * 1000) for s in (self.seconds, self.wished_s))
        more = f"; {wished} would spare them more" if self.wished_s > self.seconds + 1 else ""
        return f"begun over {over}, so that producers wait less (spread){more}"


NOT_SPREAD: Final = SpreadEstimate()


def estimate_spread(waves: Sequence[Wave], writing: Writing, within_s: float) -> SpreadEstimate:
    """Estimate for waves that are begun over at most so many seconds."""
    if not within_s:
        return NOT_SPREAD
    felt = (c for wave in waves for c in wave if c.removing or c.has_new_leader)
    topics, known = {change.topic for change in felt}, {key.topic for key in writing.produced}
    _, foreseen = Pace.within(writing, waves, within_s)
    return replace(foreseen, is_known=topics <= known)
