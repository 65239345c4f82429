"""The job's own time, by which it judges: event time that no wall clock moves. Pure.

The job takes its first time from the clock of its host, and counts on by the steady clock, which
nobody sets. Until it has been compared with the sources it is not settled: where most of them agree
that it is off, it is set to theirs. From then on a clock that jumps, of the host or of a broker, is
off the job's time, and is told (``clock_skew_ms``).

The watermark is the time up to which most sources have told. Retention and merging follow it. It
never goes back, and goes on as fast as the steady clock at most: where a host was booted anew, the
wall clock tells how much time has passed, and the slower of the two counts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

CATCHES_UP: Final = 8
"""A watermark that was held back makes good one part in so many of the time that passes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """The clocks of the job's host at one moment."""

    wall_ms: int
    """Milliseconds since 1970; anybody may set this clock."""
    boot: str
    """The boot since which the steady clock counts: readings of two boots do not compare."""
    steady_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobClock:
    """The job's time at a tick."""

    now_ms: int
    tick: Tick
    is_settled: bool = False
    """Whether it was compared with the clocks of most sources."""
    watermark_ms: int = 0
    """Up to which most sources have told; 0: none has."""
    ceiling_ms: int = 0
    """The watermark at most."""

    @classmethod
    def begun(cls, tick: Tick) -> "JobClock":
        """The time of a job that knows nothing yet."""
        return cls(now_ms=tick.wall_ms, tick=tick)

    def at(self, tick: Tick) -> "JobClock":
        """The job's time later."""
        was = self.tick
        is_same = tick.boot == was.boot and tick.steady_ms >= was.steady_ms
        passed_ms = tick.steady_ms - was.steady_ms if is_same else tick.wall_ms - was.wall_ms
        passed_ms = max(0, passed_ms)
        ceiling_ms = self.ceiling_ms + passed_ms if self.ceiling_ms else 0
        now_ms = self.now_ms + passed_ms
        if 0 < ceiling_ms < now_ms:
            ceiling_ms = min(now_ms, ceiling_ms + passed_ms // CATCHES_UP * is_same)
        return replace(
            self,
            now_ms=now_ms,
            tick=tick,
            is_settled=self.is_settled and is_same,
            ceiling_ms=ceiling_ms,
        )

    def with_watermark(self, newest_ms: Iterable[int]) -> "JobClock":
        """The clock with the watermark after a batch. ``newest_ms``: of each source that is heard
        of."""
        times = sorted(newest_ms)
        if not times:
            return self
        most_ms = times[(len(times) - 1) // 2]
        ceiling_ms = self.ceiling_ms or most_ms
        watermark_ms = max(self.watermark_ms, min(most_ms, ceiling_ms))
        return replace(self, watermark_ms=watermark_ms, ceiling_ms=ceiling_ms)

    @property
    def skew_ms(self) -> int:
        """The wall clock of the job's host less the job's time."""
        return self.tick.wall_ms - self.now_ms


def encode_job_clock(clock: JobClock) -> dict[str, Any]:
    """Encode the clock as JSON holds it."""
    return asdict(clock)


def decode_job_clock(document: Mapping[str, Any]) -> JobClock:
    """Inverse of ``encode_job_clock``."""
    return JobClock(**{**document, "tick": Tick(**document["tick"])})
