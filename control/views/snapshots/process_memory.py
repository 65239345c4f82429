"""How processes that show snapshots behave beside what they show: small, and soon to answer.

Decoding and judging a version of a large store takes several times the memory that its snapshot
keeps; Arrow's, NumPy's and the C library's allocators hold on to it. Python looks for garbage, and
gives the turn to another thread, at times that keys and requests feel.
"""

import ctypes
import gc
import sys
from functools import cache
from typing import Final

_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
"""Of ``mallopt`` in glibc's malloc.h."""
_THP_DISABLE: Final = 41
"""Of ``prctl`` in Linux's prctl.h."""
COLUMN_BYTES: Final = 128 * 1024
"""From here on an allocation is a column: mapped by itself, and unmapped when it is freed."""
ARENAS: Final = 2
"""Each thread that decodes would have its own, full of what it once needed."""
SWITCH_S: Final = 0.001
"""For so long a thread that decodes keeps Python from those that answer keys and requests. An
answer takes several turns; Python's own 5 ms for each of them can be seen."""


def be_small() -> None:
    """For processes that show snapshots; call it before anything is read.

    Arrow then takes memory from the C library as NumPy does, and that returns what is freed: with
    an allocator of its own each thread holds on to what it once needed. Of a terminal at 100,000
    replicas this saves 70 of 260 MB, and that columns are not rounded up to huge pages of 2 MiB
    another 12.
    """
    import pyarrow as pa  # not before `be_quick`

    pa.set_memory_pool(pa.system_memory_pool())
    library = _c_library()
    if hasattr(library, "mallopt"):  # other C libraries have no such knobs
        library.mallopt(_MMAP_THRESHOLD, COLUMN_BYTES)
        library.mallopt(_ARENA_MAX, ARENAS)
    take_what_is_used()


def take_what_is_used() -> None:
    """No huge pages: Arrow's allocator asks for them, and Linux puts them together at a time of its
    own, 2 MiB wherever a few bytes are in use. A page that showed 600 partitions grew from 190 to
    198 MB at once, twelve minutes after its start.
    """
    library = _c_library()
    if hasattr(library, "prctl"):
        library.prctl(_THP_DISABLE, *map(ctypes.c_ulong, (1, 0, 0, 0)))


def be_quick() -> None:
    """For processes that answer keys; ``settle`` ends it once the first picture stands.

    Until then nothing is garbage, but to look for it takes a tenth of the time.
    """
    gc.disable()
    take_turns()


def take_turns() -> None:
    """For processes that answer while they take in a new version."""
    sys.setswitchinterval(SWITCH_S)


def settle() -> None:
    """Keeps what was loaded out of the collector of garbage, once the first screen stands (after
    ``be_quick``)."""
    if not gc.isenabled():
        keep_loaded()
        gc.enable()


def keep_loaded() -> None:
    """From now on only what comes after is looked through for garbage. 75,000 objects would be a
    pause of 25 ms each time."""
    gc.collect()
    gc.freeze()


@cache
def _c_library() -> ctypes.CDLL:
    """Opened once: each opening makes a class that only Python's collector removes."""
    return ctypes.CDLL(None)


def give_back() -> None:
    """Return what is not in use to the operating system."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    library = _c_library()
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)
