"""Fifty messages of a hostile producer: what is drawn of them for page and terminal, the terminal
itself, and tail show every one of them, and say what it is."""

import json
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import pytest
from textual.widgets import Static

from control.kafka.connection.connections import use_connections
from control.kafka.connection.settings import KafkaSettings
from control.messages.decoding.decoder import decoder_of
from control.messages.message_search import MessageSearch
from control.views.messages.details import whole_words
from control.views.tables.messages import message_row
from dashboard.components.markup import MARKUP
from dashboard.live.message_reading import Seen
from dashboard.pages.browse import messages
from tests.contract.operations_rig import terminal_on, unique
from tests.support.cases import case
from tests.support.cluster import LocalCluster
from tests.support.command_line import CommandLine
from tests.support.hostile_messages import SCHEMAS, hostile, write_hostile
from tests.support.registry_of_texts import RegistryOfTexts
from tests.support.settle import settle
from tui.app import PartiscopeApp
from tui.screens.base import ViewScreen
from tui.widgets.row_table import RowTable


@pytest.fixture(scope="module")
def registry() -> Iterator[RegistryOfTexts]:
    with RegistryOfTexts(SCHEMAS) as server:
        yield server


@pytest.fixture(scope="module")
def topic(our_cluster: LocalCluster) -> str:
    name = unique("hostile")
    write_hostile(our_cluster.bootstrap, name)
    return name


async def test_page_and_terminal_show_each_and_say_what_it_is(
    our_cluster: LocalCluster, topic: str, registry: RegistryOfTexts
) -> None:
    settings = KafkaSettings(bootstrap=our_cluster.bootstrap, schema_registry=registry.settings)
    search = MessageSearch.of_query(topic, {"since": "earliest"})
    found = await search.read(settings, now_ms=0, limit=100)
    assert len(found.records) == len(hostile()) == 50
    decoder = decoder_of(settings, topic)
    drawn = getattr(messages(found.records, Seen(search=search, decoder=decoder)), MARKUP)
    assert drawn.count('class="message"') == 50
    assert len(drawn) < 8 << 20
    for record, (value, told) in zip(found.records, hostile(), strict=True):
        with case(record.offset, (value or b"")[:40]):
            decoded = decoder.record(record)
            row = message_row(record, decoded)
            shown = row.record_value.text
            assert shown.isprintable()
            whole = "" if decoded.value is None else whole_words(decoded.value)
            assert told in f"{shown}\n{whole}"


def test_tail_shows_each_and_goes_on(
    our_cluster: LocalCluster, topic: str, registry: RegistryOfTexts, tmp_path: Path
) -> None:
    line = CommandLine(bootstrap=our_cluster.bootstrap, bus=our_cluster.bootstrap, folder=tmp_path)
    words = ("tail", topic, "--offset", "earliest", "-e", "--schema-registry", registry.url)
    shown = [it for it in line.run(*words).splitlines() if f"{topic}-0 @ " in it]
    assert len(shown) == 50
    for text, (value, told) in zip(shown, hostile(), strict=True):
        with case((value or b"")[:40]):
            assert told in text or value is None or len(value) > 1_000
    lines = line.run(*words, "--json", "--count", "40").splitlines()
    offsets = [json.loads(each, parse_int=str)["offset"] for each in lines]
    assert offsets == list(map(str, range(40)))


@pytest.mark.thorough
async def test_the_terminal_opens_each_and_goes_on(
    our_cluster: LocalCluster, topic: str, registry: RegistryOfTexts, tmp_path: Path
) -> None:
    address = our_cluster.bootstrap
    use_connections([KafkaSettings(bootstrap=address, schema_registry=registry.settings)])
    try:
        with terminal_on(address, tmp_path, path=f"browse/{topic}?since=earliest") as app:
            async with app.run_test(size=(160, 60)) as pilot:
                await settle(pilot, lambda: _row_count(app.screen.query(RowTable)) == 50, "rows")
                for number, (value, told) in enumerate(hostile()):
                    with case(number, (value or b"")[:40]):
                        await pilot.press("enter")
                        await settle(pilot, partial(_tells, app, told), told)
                        await pilot.press("r", "escape", "down")
                        await settle(pilot, lambda: isinstance(app.screen, ViewScreen), "the list")
    finally:
        use_connections([])


def _tells(app: PartiscopeApp, told: str) -> bool:
    """Whether a message is open, and says this."""
    found = app.screen.query("#message-text")
    return any(told in str(each.render()) for each in found if isinstance(each, Static))


def _row_count(tables: Iterable[RowTable]) -> int:
    return sum(table.row_count for table in tables)
