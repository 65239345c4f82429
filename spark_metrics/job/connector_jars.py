"""Spark's Kafka connector: five jars, fetched at first use into a cache; afterwards no network.

The cache is ``PARTISCOPE_CACHE``, else ``~/.cache/partiscope``; the jars lie in
``spark-jars/<spark>_<scala>/``. They come from Maven Central, or from the repository whose URL
``PARTISCOPE_MAVEN`` names, and each must have the checksum below.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from http.client import HTTPException
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from spark_metrics.window.errors import JarsError

SPARK: Final = "4.2.0"
"""The Spark that all of this was tested with; pyproject.toml asks for no other."""
SCALA: Final = "2.13"
MAVEN_CENTRAL: Final = "https://repo1.maven.org/maven2"
READ_TIMEOUT_S: Final = 30
"""Seconds to wait for the next bytes of an answer."""
PROGRESS_S: Final = 2.0
_CHUNK: Final = 64 * 1024
_SCHEMES: Final = ("https://", "http://", "file://")
HOW_TO_GO_ON: Final = (
    "See that the address can be reached: HTTPS_PROXY names a proxy, PARTISCOPE_MAVEN the URL of a "
    "mirror. Without network, copy this folder from a machine where `partiscope setup` has run"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """A file of a Maven repository, with its size in bytes."""

    group: str
    artifact: str
    version: str
    size: int
    sha256: str

    @property
    def name(self) -> str:
        """The file's name in the cache, as Ivy gives it."""
        return f"{self.group}_{self.artifact}-{self.version}.jar"

    @property
    def address(self) -> str:
        """Where it lies in a repository."""
        folder = f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}"
        return f"{folder}/{self.artifact}-{self.version}.jar"

    def is_whole(self, content: bytes) -> bool:
        return sha256(content).hexdigest() == self.sha256


JARS: Final = (
    Jar(
        group="org.apache.commons",
        artifact="commons-pool2",
        version="2.13.1",
        size=156_457,
        sha256="f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f",
    ),
    Jar(
        group="org.apache.kafka",
        artifact="kafka-clients",
        version="3.9.2",
        size=9_220_052,
        sha256="014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8",
    ),
    Jar(
        group="org.apache.spark",
        artifact=f"spark-sql-kafka-0-10_{SCALA}",
        version=SPARK,
        size=494_879,
        sha256="64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
    ),
    Jar(
        group="org.apache.spark",
        artifact=f"spark-token-provider-kafka-0-10_{SCALA}",
        version=SPARK,
        size=66_617,
        sha256="641c7947afc8aa1189e433b7c2d305293993c8691bc1c2062d6d4f513b12518c",
    ),
    Jar(
        group="org.scala-lang.modules",
        artifact=f"scala-parallel-collections_{SCALA}",
        version="1.2.0",
        size=1_120_803,
        sha256="4eae6e68cf44e9f709970355590ae981883edf6484608d747376a56cbb285432",
    ),
)
"""The connector and what pyspark does not bring along itself (tests/spark/test_connector_jars)."""


def cache_folder() -> Path:
    """Where everything fetched is kept."""
    found = os.environ.get("PARTISCOPE_CACHE")
    return Path(found).absolute() if found else Path.home() / ".cache" / "partiscope"


def jars_folder() -> Path:
    """Where this Spark's connector is kept."""
    return cache_folder() / "spark-jars" / f"{SPARK}_{SCALA}"


def connector_jars() -> list[Path]:
    """The jars in the cache.

    Raises:
        JarsError: another Spark is installed, or jars were never fetched, or only in part.
    """
    _check_spark()
    folder = jars_folder()
    missing = [jar.name for jar in JARS if _size_of(folder / jar.name) != jar.size]
    if missing:
        raise JarsError(
            "Spark's Kafka connector is not set up",
            why=f"{len(missing)} of its {len(JARS)} jars are not in {folder}",
            what_next="Run `partiscope setup`, which fetches them once",
        )
    return [folder / jar.name for jar in JARS]


def fetch_jars(say: Callable[[str], None] = lambda text: None) -> list[Path]:
    """Fetch those jars that the cache lacks or has damaged; ``say`` gets lines of progress.

    Raises:
        JarsError: another Spark is installed, or a jar cannot be had or kept.
    """
    _check_spark()
    folder = jars_folder()
    try:
        wanted = [jar for jar in JARS if not _is_kept(folder, jar)]
        if wanted:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder) as room:
                _fetch_all(wanted, Path(room), say)
    except OSError as error:
        raise JarsError(
            "Spark's Kafka connector cannot be kept",
            why=f"{folder}: {error.strerror or error}",
            what_next="Set PARTISCOPE_CACHE to a folder that you may write",
        ) from error
    return connector_jars()


def say_on_stderr(text: str) -> None:
    """A line of progress for people."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _check_spark() -> None:
    """The connector fits one release of Spark. To load pyspark would take a quarter second."""
    try:
        found = f"pyspark {version('pyspark')} is installed"
    except PackageNotFoundError:
        found = "pyspark is not installed"
    if found != f"pyspark {SPARK} is installed":
        raise JarsError(
            found,
            why=f"the Kafka connector is that of Spark {SPARK}",
            what_next=f"Install pyspark=={SPARK} in its place, into {sys.prefix}",
        )


def _size_of(file: Path) -> int | None:
    try:
        return file.stat().st_size
    except OSError:
        return None


def _is_kept(folder: Path, jar: Jar) -> bool:
    file = folder / jar.name
    return _size_of(file) == jar.size and jar.is_whole(file.read_bytes())


def _fetch_all(wanted: list[Jar], room: Path, say: Callable[[str], None]) -> None:
    """A jar appears in the cache whole or not at all, also where two processes fetch it."""
    repository = os.environ.get("PARTISCOPE_MAVEN", "").rstrip("/") or MAVEN_CENTRAL
    if not repository.startswith(_SCHEMES):
        raise JarsError(
            f"PARTISCOPE_MAVEN is {repository!r}",
            why="it is no URL of a Maven repository",
            what_next="Give one that begins with https://, http:// or file://",
        )
    whole = sum(jar.size for jar in wanted) / 1e6
    say(f"Spark's Kafka connector: fetching {whole:.1f} MB from {repository}, once")
    progress = _Progress(f"of {whole:.1f} MB", say)
    for jar in wanted:
        content = b"".join(_chunks(jar, f"{repository}/{jar.address}", progress))
        if not jar.is_whole(content):
            raise JarsError(
                f"{jar.name} is not the file that it should be",
                why=f"{repository}/{jar.address} gave {len(content):,} bytes with another checksum",
                what_next="See whether a proxy or mirror answers in its place. Nothing was kept",
            )
        (room / jar.name).write_bytes(content)
    for jar in wanted:
        (room / jar.name).replace(room.parent / jar.name)


def _chunks(jar: Jar, url: str, progress: "_Progress") -> Iterator[bytes]:
    """The answer's bytes, at most a chunk more than the jar has."""
    count = 0
    try:
        with urlopen(url, timeout=READ_TIMEOUT_S) as answer:  # noqa: S310  # scheme checked
            while count <= jar.size and (chunk := answer.read(_CHUNK)):
                count += len(chunk)
                progress.add(len(chunk))
                yield chunk
    except (OSError, HTTPException, ValueError) as error:
        if isinstance(error, HTTPError):
            error.close()
        reason = error.reason if type(error) is URLError else error
        raise JarsError(
            "Spark's Kafka connector cannot be fetched",
            why=f"{url}: {reason}",
            what_next=f"{HOW_TO_GO_ON}: {jars_folder()}",
        ) from error


class _Progress:
    """Tells each two seconds how much has come."""

    def __init__(self, of: str, say: Callable[[str], None]) -> None:
        self._of, self._say = of, say
        self._count, self._told_s = 0, time.monotonic()

    def add(self, count: int) -> None:
        self._count += count
        if time.monotonic() - self._told_s >= PROGRESS_S:
            self._told_s = time.monotonic()
            self._say(f"  {self._count / 1e6:.1f} {self._of}")
