"""What several folders share: Kafka's jars, the order of the folders, who runs beside whom."""

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Final
from zlib import crc32

import pytest
from hypothesis import settings

from tests.support import kafka_oracle
from tests.support.isolation import MACHINE, isolate, working_directory
from tests.support.kafka_zookeeper import ZOOKEEPER_KAFKA_VERSION
from tests.support.patience import SLOWNESS, patience_s
from tests.support.watchdog import pytest_runtest_protocol as pytest_runtest_protocol
from tests.support.watchdog import pytest_xdist_make_scheduler as pytest_xdist_make_scheduler

# The same examples at every run: a change is judged by what it changed. `make soak` explores.
settings.register_profile("steady", derandomize=True, database=None, deadline=None)
settings.register_profile("exploring", print_blob=True, deadline=None)
settings.load_profile(MACHINE.get("HYPOTHESIS_PROFILE", "steady"))

# Where a script starts the tests in its background Ctrl-C is ignored, by all that they start too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

isolate()

from control.kafka.connection import wire  # noqa: E402 - nothing of the product before
from control.operations.bus.proof import use_keys  # noqa: E402
from partiscope.proof_keys import KeyFiles  # noqa: E402

use_keys(KeyFiles(Path(os.environ["PARTISCOPE_PROOF__KEY_FILE"])))
# A person is told of a cluster that is silent for so long; here it may be the machine.
setattr(wire, "ANSWERS_WITHIN_S", patience_s(wire.ANSWERS_WITHIN_S))  # noqa: B010 - Final

TESTS: Final = Path(__file__).parent
FIRST: Final = ("test_isolation.py", "spark", "e2e", "contract", "simulation", "property")
"""In this order, before the short tests of the other folders: who starts Spark, browsers and
clusters is not what everybody waits for at the end."""

SHARED: Final = ("our_cluster", "kafka_cluster", "kafka_today")
"""Clusters that one whole folder shares; those who use one stay together in one process. They come
last in their folder: a cluster that waits for its next test still takes a tenth of a core."""

REAL_KAFKA: Final = frozenset(
    {"kafka_libs", "kafka_today_libs", "zookeeper_kafka_libs", "kafka_cluster", "kafka_today"}
)
"""Fixtures of real Kafka: a test that uses one is marked ``kafka_oracle``."""
OTHER_JVMS: Final = frozenset({"registry_home"})
"""Fixtures of other servers on Java: a test that uses one is ``thorough``."""
OTHER_SUITES: Final = ("thorough", "soak")
"""Marks of tests that `make test` does not run: these may start real Kafka and its tools."""

EVERY: Final = int(MACHINE.get("TESTS_EVERY", "1"))

NAME_LENGTH_MAX: Final = 80
"""Characters of a parameter that the name of a test shows."""

KAFKA_OF_FIXTURES: Final[dict[str, set[str]]] = {}
"""Versions of real Kafka by the fixture that talks to it."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """pytest's own time-out has the same patience as those within the tests."""
    config.option.timeout = patience_s(config.option.timeout or 0.0)


def pytest_report_header() -> str:
    """What a failure on a slow machine is to be judged by."""
    return f"slowness {SLOWNESS:.1f}: time-outs are stretched by it"


def pytest_make_parametrize_id(val: object) -> str | None:
    """A long value is told by its length: the name of a failed test has to fit on a screen, and on
    the command line that runs it again."""
    if isinstance(val, str | bytes) and len(ascii(val)) > NAME_LENGTH_MAX:
        return f"{len(val)} of {type(val).__name__}"
    return None


def pytest_collection_finish() -> None:
    """From here on no path is relative to where the tests were started, and Textual's pilot waits
    for a screen as long as tests do."""
    os.chdir(working_directory())
    if "textual" in sys.modules:
        from textual.pilot import Pilot

        Pilot._wait_for_screen.__defaults__ = (patience_s(30.0),)


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """Name the group that stays in one process where several run (``--dist loadgroup``), and the
    suite of what needs real Kafka."""
    item.add_marker(pytest.mark.xdist_group(_group(item)))
    used = _used(item)
    if used & REAL_KAFKA:
        item.add_marker(pytest.mark.kafka_oracle)
    if used & OTHER_JVMS or item.get_closest_marker("kafka_oracle") is not None:
        item.add_marker(pytest.mark.thorough)
    if (limit := item.get_closest_marker("timeout")) is not None:
        stretched = pytest.mark.timeout(patience_s(limit.args[0]))
        item.add_marker(stretched, append=False)  # before its own


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep each of these folders' shuffled tests together, so that what they share can end.
    ``TESTS_EVERY=8`` in the environment takes one test in eight, the same ones each time."""
    items[:] = [it for it in items if crc32(it.nodeid.encode()) % EVERY == 0]
    items.sort(key=_rank)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Take modules and tests out of the garbage collector, which would look at these objects, more
    than a million, again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
    """Remember which Kafka a fixture is about: tests that share it do not set it up."""
    before = {*kafka_oracle.USED}
    kafka_oracle.USED.clear()
    try:
        return (yield)
    finally:
        KAFKA_OF_FIXTURES[fixturedef.argname] = {*kafka_oracle.USED}
        kafka_oracle.USED.update(before)


def pytest_unconfigure() -> None:
    """Give modules and tests back to the garbage collector, and take Hypothesis out of it.

    The collector outlives all modules. Its callback would keep Hypothesis, tests and the types of
    DuckDB that they name alive, which DuckDB tells as leaks at exit.
    """
    gc.unfreeze()
    gc.callbacks[:] = [it for it in gc.callbacks if not _is_of_hypothesis(it)]


def _is_of_hypothesis(callback: object) -> bool:
    return getattr(callback, "__module__", "").startswith("hypothesis.")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """No Kafka is used yet, nor may one be where `make test` runs the test."""
    kafka_oracle.USED.clear()
    kafka_oracle.MAY_NOT.clear()
    if not any(item.get_closest_marker(suite) for suite in OTHER_SUITES):
        kafka_oracle.MAY_NOT.add(item.nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Tell in a report (`--junitxml`) which Kafka the test used, for compatibility_table.py."""
    fixtures = (KAFKA_OF_FIXTURES.get(name, set()) for name in getattr(item, "fixturenames", ()))
    for version in sorted(kafka_oracle.USED.union(*fixtures)):
        item.user_properties.append(("kafka", version))


def _rank(item: pytest.Item) -> tuple[int, int]:
    folder = _folder(item)
    place = FIRST.index(folder) if folder in FIRST else len(FIRST)
    return place, SHARED.index(_cluster(item)) + 1 if _cluster(item) else 0


def _group(item: pytest.Item) -> str:
    """One Spark session at a time, one browser at a time, each shared cluster once."""
    folder = _folder(item)
    if folder == "e2e":
        return "pages" if item.get_closest_marker("spark") is None else "whole product"
    return folder if folder == "spark" else _cluster(item) or str(item.path)


def _folder(item: pytest.Item) -> str:
    return _folder_of(item.path)


@cache
def _folder_of(path: Path) -> str:
    return path.relative_to(TESTS).parts[0]


def _cluster(item: pytest.Item) -> str:
    """The shared cluster that a test uses, as a fixture or as the parameter of one; of several the
    one that fewer tests use. Empty without one."""
    used = _used(item)
    return next((name for name in reversed(SHARED) if name in used), "")


def _used(item: pytest.Item) -> set[str]:
    """Its fixtures, those of its fixtures, and those that are named by a parameter."""
    spec = getattr(item, "callspec", None)
    return {*getattr(item, "fixturenames", ()), *map(str, spec.params.values() if spec else ())}


@pytest.fixture(autouse=True)
def _own_data_directory() -> Iterator[None]:
    """A command run within this process names its data directory to its children, not to the
    tests that come after it."""
    before = os.environ.get("PARTISCOPE_DATA")
    yield
    if before is None:
        os.environ.pop("PARTISCOPE_DATA", None)
    else:
        os.environ["PARTISCOPE_DATA"] = before


@pytest.fixture(scope="session")
def kafka_libs() -> Path:
    """Kafka's jars; skips where they cannot be had."""
    return _libs_or_skip(kafka_oracle.KAFKA_VERSION)


@pytest.fixture(scope="session")
def zookeeper_kafka_libs() -> Path:
    """The jars of Kafka 2.8 and ZooKeeper; skips where they cannot be had."""
    return _libs_or_skip(ZOOKEEPER_KAFKA_VERSION)


def _libs_or_skip(version: str) -> Path:
    try:
        return kafka_oracle.kafka_libs(version)
    except kafka_oracle.OracleUnavailableError as error:
        pytest.skip(str(error))
