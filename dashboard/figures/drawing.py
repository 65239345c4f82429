"""Charts of history: drawn, or in one sentence why they cannot be."""

from collections.abc import Callable

from control.views.snapshots.store import StoreUnreadableError
from dashboard.figures.base import Figure, empty_figure


def drawn(build: Callable[[], Figure], scheme: str) -> Figure:
    """One chart of what the store keeps."""
    return all_drawn(lambda: (build(),), 1, scheme)[0]


def all_drawn(
    build: Callable[[], tuple[Figure, ...]], count: int, scheme: str
) -> tuple[Figure, ...]:
    """Several at once; all say the same when the store cannot be read."""
    try:
        return build()
    except StoreUnreadableError:
        words = "n/a: the metrics store cannot be read; the findings say why"
        return (empty_figure(words, scheme),) * count
