"""Opens what was fetched, on threads that do nothing else: a search that judges its records for
long holds up no other work of the process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

from control.kafka.records.decoding import FetchedBytes
from control.kafka.records.merge_sources import Source
from control.kafka.records.scan_progress import Scan

SEARCHES_MAX: Final = 40
"""That open records at the same time; others wait."""
_threads: Final = ThreadPoolExecutor(SEARCHES_MAX, thread_name_prefix="records")
_P = ParamSpec("_P")
_Answer = TypeVar("_Answer")


async def beside(work: Callable[_P, _Answer], *args: _P.args, **kwargs: _P.kwargs) -> _Answer:
    """Do it on one of the threads: it may judge records."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_threads, partial(work, *args, **kwargs))


def open_all(
    opened: Iterable[Source], fetched: Iterable[tuple[Source, FetchedBytes]], scan: Scan
) -> None:
    """The next of what came before, and the first of what came now; large batches take seconds."""
    for source in opened:
        if not scan.is_stopped:
            source.open_more()
    for source, data in fetched:
        if not scan.is_stopped:
            source.handle_fetched(data)
