"""The journal on a real bus: it names who acted, and verification finds what was done to it."""

import asyncio
import csv
import io
import json
import os
import pwd
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer

from control.access.login import Login, acting_as
from control.access.roles import ADMIN, BUILT_IN, EVERYWHERE
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import ConfigResource, ConfigScope
from control.model.watched_cluster import WatchedCluster
from control.move.events import EVENTS_TOPIC
from control.move.journal_lines import ASKED, JournalLine
from control.operations.bus.chain import use_chain
from control.operations.bus.topics import EVENTS
from control.operations.catalogue.topics.create_topic import CreateTopic
from control.operations.errors import ChainFileError
from control.operations.operation_session import OperationSession
from partiscope.access.users_file import User, UsersFile
from partiscope.cli.shared.exits import Exit
from partiscope.journal_chain import ChainFile
from tests.contract.operations_rig import unique
from tests.support.cluster import LocalCluster
from tests.support.command_line import CommandLine
from tests.support.phrases import lacking

ALICE = Login(name="alice", address="10.0.0.5", roles={EVERYWHERE: ADMIN})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("sealed")) as running:
        yield running


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[ChainFile]:
    """A new chain: whatever other tests did to theirs."""
    file = ChainFile(tmp_path / "journal.chain")
    use_chain(file)
    yield file
    use_chain(None)


@pytest.fixture
async def session(cluster: LocalCluster, chain: ChainFile) -> AsyncIterator[OperationSession]:
    watched = WatchedCluster(bootstrap=cluster.bootstrap)
    async with OperationSession(watched, bus=cluster.bootstrap, who="me@host") as opened:
        yield opened


async def make(session: OperationSession) -> str:
    """A topic, and its two lines."""
    name = unique("sealed")
    previewed = await session.preview(CreateTopic(topic=name, partitions=1, replication_factor=1))
    await session.perform(previewed)
    return name


async def faults_of(
    session: OperationSession, chain: ChainFile, known: Sequence[str] = ()
) -> list[str]:
    """Those that are not known from before."""
    found = await session.journal.verify(chain.known())
    return [fault for fault in found.faults if fault not in known]


async def lines_about(session: OperationSession, name: str) -> list[JournalLine]:
    return [line for line in await session.journal.lines() if name in line.what]


async def test_a_line_names_login_face_and_address(session: OperationSession) -> None:
    with acting_as(ALICE):
        name = await make(session)
    (line,) = await lines_about(session, name)
    assert (line.who, line.outcome) == ("alice (page, 10.0.0.5)", "done")
    assert [line.is_of(it) for it in ("alice", "ali", "me", "")] == [True, False, False, True]
    (line,) = await lines_about(session, await make(session))
    assert (line.who, line.is_of("me"), line.is_of("alice")) == ("me@host", True, False)


async def test_several_who_write_at_once_keep_one_chain(
    session: OperationSession, cluster: LocalCluster, chain: ChainFile
) -> None:
    known = await faults_of(session, chain)
    watched = WatchedCluster(bootstrap=cluster.bootstrap)
    async with (
        OperationSession(watched, bus=cluster.bootstrap) as second,
        OperationSession(watched, bus=cluster.bootstrap) as third,
    ):
        await asyncio.gather(*(make(each) for each in (session, second, third, session)))
    head = chain.read()
    assert (head.number, head.doubtful) == (8, ())
    assert not await faults_of(session, chain, known)


async def test_the_seal_of_a_reassignment_shows_where_its_records_have_gone(
    session: OperationSession, chain: ChainFile
) -> None:
    known = await faults_of(session, chain)
    with acting_as(ALICE):
        await session.journal.seal("reassign 3 partitions", "mv-0000dead", reason="why not")
    (line,) = [it for it in await session.journal.lines() if it.move == "mv-0000dead"]
    assert (line.outcome, line.is_of("alice"), line.reason) == (ASKED, True, "why not")
    assert not await faults_of(session, chain, known)


async def test_what_others_write_is_found(
    session: OperationSession, cluster: LocalCluster, chain: ChainFile, tmp_path: Path
) -> None:
    await make(session)
    known = await faults_of(session, chain)
    document = {
        "version": 1, "operation_id": "do-forged", "kind": "journal", "at_ms": 1, "message": "x",
        "data": {"who": "alice (page)", "link": chain.read().link("do-forged/done")},
    }  # fmt: skip
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    producer.produce(EVENTS_TOPIC, json.dumps(document), key="do-forged/99", partition=0)
    producer.flush()
    await make(session)
    (fault,) = await faults_of(session, chain, known)
    assert "is not signed" in fault
    typed = CommandLine(bootstrap=cluster.bootstrap, bus=cluster.bootstrap, folder=tmp_path)
    said = await asyncio.to_thread(typed.run, "journal", "--verify", status=Exit.FAILED)
    assert not lacking(said, fault, "the journal is not whole")


async def test_a_hash_that_was_noted_is_looked_for_in_the_chain(
    session: OperationSession, cluster: LocalCluster, chain: ChainFile, tmp_path: Path
) -> None:
    await make(session)
    noted = chain.read()
    await make(session)
    typed = CommandLine(bootstrap=cluster.bootstrap, bus=cluster.bootstrap, folder=tmp_path)
    both = ("--noted", noted.hash.upper(), "--noted", "0" * 64, "--json")
    said = await asyncio.to_thread(typed.run, "journal", *both, status=Exit.FAILED)
    told = json.loads(said[: said.rindex("}") + 1])
    assert [(it["line"], it["hash"]) for it in told["noted"]] == [(2, noted.hash)]
    assert f"no line has the noted hash {'0' * 64}" in told["faults"]
    said = await asyncio.to_thread(typed.run, "journal", "--noted", "abc", status=Exit.WRONG_USE)
    assert not lacking(said, "'abc' is no hash")


async def test_lines_that_are_cut_out_are_missed(
    session: OperationSession, cluster: LocalCluster, chain: ChainFile
) -> None:
    await make(session)
    await make(session)
    known = await faults_of(session, chain)
    end = (await session.moves.bus.ends())[EVENTS]
    async with KafkaAdmin.to(cluster.bootstrap) as admin:
        events = ConfigResource(scope=ConfigScope.TOPIC, name=EVENTS_TOPIC)
        await admin.alter_configs(events, {"cleanup.policy": "delete"})
        await admin.offsets.delete_records({EVENTS: end - 2})
    assert "lines 1 to 2 are missing" in await faults_of(session, chain, known)


def test_a_command_has_the_role_of_its_os_user(cluster: LocalCluster, tmp_path: Path) -> None:
    users = UsersFile(tmp_path / "data" / "users.json", BUILT_IN)
    me = pwd.getpwuid(os.geteuid()).pw_name
    with users.changing() as found:
        found[me] = User(name=me, roles={EVERYWHERE: "viewer"})
    typed = CommandLine(bootstrap=cluster.bootstrap, bus=cluster.bootstrap, folder=tmp_path)
    name = unique("refused")
    for words in (("topics", "create", name, "--yes"), ("tail", name, "--exit-at-end"),
                  ("browse", name, "--partition", "0", "--offset", "0")):  # fmt: skip
        said = typed.run(*words, status=Exit.REFUSED)
        assert not lacking(said, f"{me} has the role viewer"), said
    typed.run("users", "role", me, "admin")
    typed.run("topics", "create", name, "--yes")
    said = typed.run("journal", "--who", me)
    assert not lacking(said, f"{me} (command line)", name), said
    told = list(csv.DictReader(io.StringIO(typed.run("journal", "--who", me, "-q", name, "--csv"))))
    assert [(it["who"], it["outcome"]) for it in told] == [(f"{me} (command line)", "done")]
    one = typed.run("journal", "--csv", "--limit", "1")
    assert len(list(csv.DictReader(io.StringIO(one)))) == 1, one
    assert typed.run("journal", "--who", "nobody", "--csv").splitlines()[0].startswith("at,what,")


def test_a_head_that_is_none_is_told(tmp_path: Path) -> None:
    file = ChainFile(tmp_path / "journal.chain")
    assert file.known() is None
    for content in ("", "{}", "[]", '{"chain": "x", "doubtful": [1]}'):
        (tmp_path / "journal.chain").write_text(content)
        with pytest.raises(ChainFileError, match="no head of a chain"):
            file.read()
    held = file.try_hold()
    assert held is not None
    with held:
        assert ChainFile(tmp_path / "journal.chain").try_hold() is None
    again = ChainFile(tmp_path / "journal.chain").try_hold()
    assert again is not None
    with again:
        pass
