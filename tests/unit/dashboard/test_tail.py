"""Who no longer asks for a followed topic is forgotten, and too many are refused."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from control.kafka.following import Followed, TopicFollower
from dashboard.tail import TAILS_MAX, Tails


class QuietFollower:
    """A topic in which nothing happens."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()

    async def poll(self, wait_ms: int) -> list[Followed]:
        assert wait_ms > 0
        return []

    async def close(self) -> None:
        self.closed.set()


def beginning(follower: QuietFollower) -> Callable[[], Awaitable[TopicFollower]]:
    async def begin() -> TopicFollower:
        await asyncio.sleep(0)
        return cast(TopicFollower, follower)

    return begin


async def test_a_page_that_asks_no_more_is_forgotten_and_its_connections_end() -> None:
    tails, followers = Tails(idle_s=0.05), [QuietFollower(), QuietFollower()]
    first = await tails.of("page", beginning(followers[0]))
    assert not await first.take()
    await asyncio.wait_for(followers[0].closed.wait(), 60)
    again = await tails.of("page", beginning(followers[1]))
    assert again is not first
    await asyncio.wait_for(followers[1].closed.wait(), 60)


async def test_a_page_that_asks_twice_at_first_follows_once() -> None:
    tails, followers = Tails(), [QuietFollower(), QuietFollower()]
    first, second = await asyncio.gather(
        *(tails.of("page", beginning(follower)) for follower in followers)
    )
    assert first is second
    assert [follower.closed.is_set() for follower in followers] == [False, True]


async def test_more_than_a_few_are_refused_with_the_reason() -> None:
    tails = Tails()
    for number in range(TAILS_MAX):
        await tails.of(str(number), beginning(QuietFollower()))
    assert await tails.of("0", beginning(QuietFollower())) is not None
    with pytest.raises(ValueError, match=f"{TAILS_MAX} pages follow topics already"):
        await tails.of("one more", beginning(QuietFollower()))
