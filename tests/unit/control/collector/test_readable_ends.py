"""Where readable records end: found fetch by fetch in random logs of transactions, never untrue."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.records import NewRecord, build_batch
from control.collector.image import PartitionState
from control.collector.readable_ends import FETCH_BYTES, FRESH_MS, STANDS_MS, ReadableEnds
from control.kafka.records.decoding import AbortedTransaction, FetchedBytes
from control.model.ids import TopicPartition

KEY = TopicPartition("orders", 0)
PRODUCERS = 3
PASSES = 60


@dataclass
class Log:
    """A log as its leader has it, and what a consumer that reads committed records gets of it."""

    batches: list[tuple[int, bytes]] = field(default_factory=list)
    end: int = 0
    readable: set[int] = field(default_factory=set)
    open: dict[int, list[int]] = field(default_factory=dict)
    aborted: list[tuple[int, int, int]] = field(default_factory=list)

    def append(self, records: int, *, producer: int = -1, marker: bool = False) -> range:
        offsets = range(self.end, self.end + records)
        made = build_batch(
            [NewRecord(value=bytes(700 * records))] * records, base_offset=self.end,
            producer_id=producer, producer_epoch=0, is_control=marker,
            is_transactional=producer >= 0,
        )  # fmt: skip
        self.batches.append((offsets.stop - 1, made))
        self.end = offsets.stop
        return offsets

    def write(self, records: int, producer: int) -> None:
        offsets = self.append(records, producer=producer)
        if producer < 0:
            self.readable.update(offsets)
        else:
            self.open.setdefault(producer, []).extend(offsets)

    def finish(self, producer: int, *, commits: bool) -> None:
        if producer not in self.open:
            return
        written = self.open.pop(producer)
        (marker,) = self.append(1, producer=producer, marker=True)
        if commits:
            self.readable.update(written)
        else:
            self.aborted.append((producer, written[0], marker))

    @property
    def stable(self) -> int:
        return min((offsets[0] for offsets in self.open.values()), default=self.end)

    def fetch(self, at: int) -> FetchedBytes:
        """As a leader answers: whole batches to the last stable offset, the last one cut."""
        data = b"".join(it for last, it in self.batches if at <= last < self.stable)
        return FetchedBytes(
            data=data[:FETCH_BYTES], end_offset=self.end, stable_offset=self.stable,
            aborted=tuple(AbortedTransaction(producer_id=producer, first_offset=first)
                          for producer, first, marker in self.aborted if marker >= at),
        )  # fmt: skip

    def gets_any(self, offset: int) -> bool:
        """Of what is stable: a consumer gets nothing behind an open transaction."""
        return any(offset <= it < self.stable for it in self.readable)


def look(
    ends: ReadableEnds, log: Log, commits: list[int], now_ms: int, leader_epoch: int = 1
) -> int:
    """One pass; how many offsets were fetched at."""
    state = PartitionState(
        key=KEY,
        leader=1,
        leader_epoch=leader_epoch,
        replicas=(1,),
        isr=(1,),
        high_watermark=log.end,
    )
    lagging = {KEY: [it for it in commits if it < log.end]}
    ends.see(lagging if lagging[KEY] else {}, now_ms)
    wanted = ends.wanted([state], now_ms)
    for key, at in wanted.items():
        ends.take(key, log.fetch(at), now_ms)
    return len(wanted)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.integers(-1, PRODUCERS - 1), st.integers(1, 4)),
        st.tuples(st.integers(0, PRODUCERS - 1), st.sampled_from(["commit", "abort"])),
    ),
    min_size=1, max_size=14,
)  # fmt: skip


def take_step(log: Log, producer: int, what: int | str) -> None:
    if isinstance(what, int):
        log.write(what, producer)
    else:
        log.finish(producer, commits=what == "commit")


@given(STEPS, STEPS, st.lists(st.integers(0, 40), min_size=1, max_size=4))
def test_what_is_told_is_true_and_is_told_of_every_commit(
    first: list[tuple[int, int | str]], then: list[tuple[int, int | str]], commits: list[int]
) -> None:
    log, ends, now_ms = Log(), ReadableEnds(), 0
    for steps in (first, then):
        for step in steps:
            take_step(log, *step)
        commits = [min(it, log.end) for it in commits]
        look(ends, log, commits, now_ms)
        now_ms += STANDS_MS
        for _ in range(PASSES):
            now_ms += 100
            look(ends, log, commits, now_ms)
        told = ends.told(KEY, now_ms)
        assert told is None or not log.gets_any(told)
        for offset in commits:
            if offset < log.end and not log.gets_any(offset):
                assert told is not None
                assert told <= offset


def test_it_is_asked_only_where_a_commit_stands_and_only_as_long_as_it_is_not_known() -> None:
    log, ends = Log(), ReadableEnds()
    log.write(2, -1)
    log.write(1, 0)
    log.finish(0, commits=False)
    asked = [look(ends, log, [0, 2], ms) for ms in (0, STANDS_MS - 1, STANDS_MS, STANDS_MS + 1)]
    assert asked == [0, 0, 1, 1]
    assert ends.told(KEY, STANDS_MS + 1) == 2
    assert [look(ends, log, [0, 2], STANDS_MS + it) for it in range(2, 9)] == [0] * 7
    assert ends.told(KEY, STANDS_MS + 8 + FRESH_MS) == 2
    assert ends.told(KEY, STANDS_MS + 9 + FRESH_MS) is None


def test_the_log_of_another_leader_is_looked_at_anew() -> None:
    ends, before, after = ReadableEnds(), Log(), Log()
    before.write(1, -1)
    before.write(1, 0)
    before.finish(0, commits=False)
    for ms in (0, STANDS_MS):
        look(ends, before, [1], ms)
    assert ends.told(KEY, STANDS_MS) == 1
    after.write(3, -1)
    after.write(1, 0)
    after.finish(0, commits=False)
    look(ends, after, [1], STANDS_MS + 1, leader_epoch=2)
    assert ends.told(KEY, STANDS_MS + 1) is None


def test_a_damaged_header_tells_nothing() -> None:
    log, ends = Log(), ReadableEnds()
    log.write(1, 0)
    log.finish(0, commits=False)
    last, marker = log.batches[-1]
    log.batches[-1] = (last, marker[:23] + (1 << 30).to_bytes(4, "big") + marker[27:])
    log.write(3, -1)
    for ms in (0, STANDS_MS, STANDS_MS + 1):
        look(ends, log, [0], ms)
    assert ends.told(KEY, STANDS_MS + 1) is None
