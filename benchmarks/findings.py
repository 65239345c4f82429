"""Judges findings as alarms are judged, by what is wrong in truth in clusters full of trouble.

    python -m benchmarks.findings [--clusters 10] [--seconds 600] [--seed 1]

Brokers die, fall behind and come back, disks fill, clocks go wrong, directories are cordoned, by
dice; readings are missed. Prints, as Markdown, a confusion matrix in seconds, and how soon each
kind of finding appears and clears, and how often it flaps. Verdicts on groups: benchmarks.alarms.
"""

import argparse
import statistics
from collections.abc import Sequence

from tests.oracle.figures.alarms_told import Score, judged


def _soon(times: Sequence[int]) -> str:
    """``0 s, 3 s``: the median and the worst."""
    return f"{statistics.median(times):.0f} s, {max(times)} s" if times else "–"


def line(kind: str, score: Score) -> str:
    """One kind as a row of the table."""
    counts = (score.right_on, score.missed, score.right_off, score.false)
    cells = (*(f"{it:,}" for it in counts), _soon(score.appears), _soon(score.clears), score.flaps)
    return f"| {kind} | {' | '.join(map(str, cells))} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    scores = judged(range(asked.seed, asked.seed + asked.clusters), asked.seconds)
    print("Seconds of findings; appears and clears: the median and the worst\n")
    print("| finding | on | missed | quiet | false | appears | clears | flaps |")
    print("|---|---|---|---|---|---|---|---|")
    for kind, score in scores.items():
        print(line(kind, score))


if __name__ == "__main__":
    main()
