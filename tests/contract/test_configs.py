"""Configs of topics and brokers, read and changed, on ours and on Kafka."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from textual.widgets import Input, Static

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.errors import RefusedError
from control.kafka.ports import ConfigEntry, ConfigResource, ConfigScope, NewTopic
from control.model.watched_cluster import WatchedCluster
from control.operations.catalogue.brokers.configure_broker import ALL, ConfigureBroker
from control.operations.catalogue.topics.configure_topic import ConfigureTopic
from control.operations.errors import InvalidInputError
from control.operations.operation_session import OperationSession
from control.views.tables.configs import value_otherwise
from tests.contract.operations_rig import terminal_on, unique, variants
from tests.support.cluster import LocalCluster
from tests.support.phrases import lacking
from tests.support.settle import eventually, settle
from tui.screens.dialogs.operation import OperationScreen
from tui.screens.lists.configs import ConfigScreen, ConfigsScreen
from tui.widgets.row_table import RowTable

THREADS = "log.cleaner.threads"


@pytest.fixture
async def session(bootstrap: str) -> AsyncIterator[OperationSession]:
    watched = WatchedCluster(bootstrap=bootstrap)
    async with OperationSession(watched, bus=bootstrap, who="tester") as opened:
        yield opened


async def _topic(
    session: OperationSession, configs: dict[str, str] | None = None
) -> ConfigResource:
    name = unique("configured")
    new = NewTopic(name=name, partitions=1, replication_factor=1, configs=configs)
    await session.admin.create_topic(new)
    return ConfigResource(scope=ConfigScope.TOPIC, name=name)


async def _entry(session: OperationSession, resource: ConfigResource, name: str) -> ConfigEntry:
    return {it.name: it for it in await session.configs(resource)}[name]


async def test_a_config_tells_what_holds_without_its_setting(session: OperationSession) -> None:
    topic = await _topic(session, {"retention.ms": "1000"})
    own = await _entry(session, topic, "retention.ms")
    assert (own.value, own.source) == ("1000", 1)
    assert "retain" in own.documentation
    promised = value_otherwise(topic.scope, own)
    reset = ConfigureTopic(topic=topic.name, configs={"retention.ms": None})
    await session.perform(await session.preview(reset))

    async def now() -> str | None:
        return (await _entry(session, topic, "retention.ms")).value

    await eventually(now, promised)


async def test_a_preview_tells_values_with_their_meaning_and_one_that_is_there_already(
    session: OperationSession,
) -> None:
    topic = await _topic(session)
    default = (await _entry(session, topic, "retention.ms")).value or ""

    async def line(value: str | None) -> str:
        asked = ConfigureTopic(topic=topic.name, configs={"retention.ms": value})
        (change,) = (await session.preview(asked)).effect.changes
        return change.line

    assert default == "604800000"
    assert (await line("86400000")).endswith("604800000 (7 d) → 86400000 (1 d)")
    assert not lacking(await line(default), "(7 d) already", "stays when the default changes")


@pytest.mark.parametrize("value", variants(["banana", "1.5", "1_000", ""]))
async def test_a_value_of_another_type_is_never_sent(
    session: OperationSession, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await _topic(session)
    sent: list[object] = []
    alter = session.admin.alter_configs

    async def altered(resource: ConfigResource, changes: object, **more: bool) -> None:
        sent.append(changes)
        await alter(resource, changes, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(session.admin, "alter_configs", altered)
    asked = ConfigureTopic(topic=topic.name, configs={"retention.ms": value})
    with pytest.raises(InvalidInputError, match="type long"):
        await session.preview(asked)
    assert sent == []


async def test_a_value_out_of_bounds_is_refused_by_the_cluster(session: OperationSession) -> None:
    topic = await _topic(session)
    with pytest.raises(RefusedError, match="at least"):
        await session.preview(ConfigureTopic(topic=topic.name, configs={"retention.ms": "-7"}))


async def test_one_broker_and_all_of_them_are_configured_and_reset(
    session: OperationSession,
) -> None:
    first = (await session.admin.describe_cluster()).brokers[0].id
    resource = ConfigResource(scope=ConfigScope.BROKER, name=str(first))
    before = await _entry(session, resource, THREADS)

    async def threads() -> tuple[str | None, int]:
        found = await _entry(session, resource, THREADS)
        return found.value, found.source

    async def configure(broker: str, value: str | None, reason: str = "") -> None:
        asked = ConfigureBroker(broker=broker, configs={THREADS: value}, reason=reason)
        await session.perform(await session.preview(asked))

    await configure(ALL, "2", "more to clean")
    await eventually(threads, ("2", 3))
    await configure(str(first), "3")
    await eventually(threads, ("3", 2))
    assert value_otherwise(resource.scope, await _entry(session, resource, THREADS)) == "2"
    await configure(str(first), None)
    await eventually(threads, ("2", 3))
    again = await session.preview(ConfigureBroker(broker=str(first), configs={THREADS: None}))
    assert not again.is_needed, "it has no setting of its own"
    await configure(ALL, None)
    await eventually(threads, (before.value, before.source))
    lines = [line for line in await session.journal.lines() if line.reason == "more to clean"]
    assert lines[-1].after == {THREADS: "2"}


@pytest.mark.parametrize("broker", [ALL, "one"])
async def test_what_kafka_lists_only_while_it_is_set_can_be_set(
    session: OperationSession, broker: str
) -> None:
    """A rate of a throttle; what looks like one and is none is refused."""
    first = str((await session.admin.describe_cluster()).brokers[0].id)
    name, whose = "follower.replication.throttled.rate", ALL if broker == ALL else first
    resource = ConfigureBroker(broker=whose, configs={name: None}).resource

    async def rate() -> str | None:
        found = {it.name: it for it in await session.configs(resource)}
        return found[name].value if name in found else None

    before = await rate()
    asked = ConfigureBroker(broker=whose, configs={name: "1000000"})
    await session.perform(await session.preview(asked))
    await eventually(rate, "1000000")
    assert not (await session.preview(asked)).is_needed
    await session.perform(await session.preview(replace(asked, configs={name: None})))
    await eventually(rate, before)
    with pytest.raises(InvalidInputError, match=f"did you mean {name}"):
        await session.preview(replace(asked, configs={f"{name}s": "1"}))
    with pytest.raises(InvalidInputError, match="not of type long"):
        await session.preview(replace(asked, configs={name: "fast"}))


async def test_what_a_running_broker_cannot_change_is_told(session: OperationSession) -> None:
    first = str((await session.admin.describe_cluster()).brokers[0].id)
    with pytest.raises(InvalidInputError, match="restart it"):
        await session.preview(ConfigureBroker(broker=first, configs={"node.id": "7"}))
    with pytest.raises(InvalidInputError, match=r"did you mean log\.cleaner\.threads"):
        await session.preview(ConfigureBroker(broker=ALL, configs={"log.cleaner.thread": "7"}))
    with pytest.raises(InvalidInputError, match="no broker 999 is alive"):
        await session.preview(ConfigureBroker(broker="999", configs={THREADS: "7"}))


@pytest.mark.thorough
async def test_in_the_terminal_one_is_explained_compared_changed_and_reset(
    our_cluster: LocalCluster, tmp_path: Path
) -> None:
    name, other = unique("one"), unique("two")
    async with KafkaAdmin.to(our_cluster.bootstrap) as admin:
        set_there = {name: {"retention.ms": "3600000"}, other: {"segment.ms": "7200000"}}
        for topic, configs in set_there.items():
            await admin.create_topic(
                NewTopic(name=topic, partitions=1, replication_factor=1, configs=configs)
            )
    with terminal_on(our_cluster.bootstrap, tmp_path, path=f"topics/{name}/configs") as app:
        async with app.run_test(size=(120, 40)) as pilot:
            await settle(pilot, lambda: isinstance(app.screen, ConfigsScreen), "the configs")
            table = app.screen.query_one(RowTable)

            def first() -> tuple[str, ...]:
                row = table.pointed
                return () if row is None else (row.key, *(row.cell(it).text for it in ("value",)))

            await settle(pilot, lambda: first() == ("retention.ms", "3600000 (1 h)"), "what is set")
            await pilot.press("enter")
            await settle(pilot, lambda: isinstance(app.screen, ConfigScreen), "its explanation")
            words = "\n".join(str(it.render()) for it in app.screen.query(Static))
            assert "604800000 (7 d)" in words
            await pilot.press("escape", "d", *other, "enter")
            await settle(pilot, lambda: "other" in table.shown, "the comparison")
            assert {row.key for row in table.page.rows[:2]} == {"retention.ms", "segment.ms"}  # type: ignore[union-attr]
            await settle(pilot, lambda: first()[:1] == ("retention.ms",), "the cursor stays")
            await pilot.press("Z")
            await settle(pilot, lambda: isinstance(app.screen, OperationScreen), "the form")
            assert app.screen.query_one("#field-configs", Input).value == "retention.ms="
            await pilot.press("ctrl+s")
            await settle(pilot, lambda: type(app.screen).__name__ == "ConfirmScreen", "asked")
            await pilot.press("y")
            await settle(pilot, lambda: isinstance(app.screen, ConfigsScreen), "back")

            def value() -> str:
                rows = table.page.rows if table.page else ()
                return str(next(row.cell("value") for row in rows if row.key == "retention.ms"))

            await settle(pilot, lambda: value() == "604800000 (7 d)", "read again")
