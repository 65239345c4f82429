"""Many cases in one test, where a test for each costs more than what it asks."""

from collections.abc import Iterator
from contextlib import contextmanager

from hypothesis import settings


@contextmanager
def case(*of: object) -> Iterator[None]:
    """Names the case in a failure within."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"case: {', '.join(map(repr, of))}")
        raise


def examples(count: int) -> settings:
    """So many examples, and ten times as many in `make soak`."""
    is_soak = settings.get_current_profile_name() == "exploring"
    return settings(max_examples=count * 10 if is_soak else count)
