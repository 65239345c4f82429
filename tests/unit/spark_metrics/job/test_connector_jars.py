"""Spark's connector is fetched once, whole or not at all, and an error says how to go on."""

import os
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Final

import pytest

from spark_metrics.job import connector_jars
from spark_metrics.job.connector_jars import Jar, fetch_jars, jars_folder
from spark_metrics.window.errors import JarsError
from tests.support.phrases import lacking
from tests.support.unprivileged import as_ordinary_user

CONTENT: Final = {"small": b"s" * 10, "large": b"l" * 300_000}
JARS: Final = tuple(
    Jar(
        group="org.example",
        artifact=name,
        version="1.0",
        size=len(content),
        sha256=sha256(content).hexdigest(),
    )
    for name, content in CONTENT.items()
)
SMALL, LARGE = JARS


class Repository:
    """A Maven repository that answers over HTTP what a test puts there."""

    def __init__(self) -> None:
        self.files = {jar.address: CONTENT[jar.artifact] for jar in JARS}
        self.asked: list[str] = []
        files, asked = self.files, self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path.removeprefix("/maven/"))
                body = files.get(asked[-1])
                self.send_response(404 if body is None else 200)
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/maven/"


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Repository]:
    """Two jars there, and none in the cache."""
    made = Repository()
    monkeypatch.setattr(connector_jars, "JARS", JARS)
    monkeypatch.setenv("PARTISCOPE_CACHE", str(tmp_path / "my cäche"))
    monkeypatch.setenv("PARTISCOPE_MAVEN", made.url)
    thread = Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


def refusal() -> str:
    """What is said of a fetch that fails; nothing is left of it."""
    with pytest.raises(JarsError) as refused:
        fetch_jars()
    assert not [*jars_folder().glob(".*")]
    return str(refused.value)


def test_the_jars_are_fetched_once_and_progress_is_told(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector_jars, "PROGRESS_S", 0.0)
    said: list[str] = []
    jars = fetch_jars(said.append)
    assert [jar.read_bytes() for jar in jars] == [*CONTENT.values()]
    assert repository.asked == [SMALL.address, LARGE.address]
    assert not lacking(said[0], "0.3 MB", repository.url.rstrip("/"))
    assert said[-1].strip() == "0.3 of 0.3 MB"
    assert fetch_jars(said.append) == jars
    assert len(repository.asked) == 2


def test_a_jar_that_is_lost_or_damaged_is_fetched_anew_alone(repository: Repository) -> None:
    small, _ = fetch_jars()
    small.write_bytes(b"x" * SMALL.size)
    assert fetch_jars()[0].read_bytes() == CONTENT["small"]
    small.unlink()
    with pytest.raises(JarsError, match="1 of its 2 jars"):
        connector_jars.connector_jars()
    fetch_jars()
    assert repository.asked[2:] == [SMALL.address, SMALL.address]


@pytest.mark.parametrize("content", [b"<html>log in</html>", CONTENT["large"][:-1], b"l" * 10**7])
def test_another_file_in_its_place_is_refused(repository: Repository, content: bytes) -> None:
    """A page of a proxy, a file cut short, one without an end."""
    repository.files[LARGE.address] = content
    assert not lacking(refusal(), LARGE.name, "another checksum", "proxy")
    assert not [*jars_folder().iterdir()]


def test_where_it_cannot_be_fetched_the_next_step_is_told(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways = ("HTTPS_PROXY", "PARTISCOPE_MAVEN", "partiscope setup", str(jars_folder()))
    del repository.files[SMALL.address]
    assert not lacking(refusal(), "404", *ways)
    for url in ("http://127.0.0.1:1/maven", "http://nowhere.invalid", "http://[::1", "http://a b"):
        monkeypatch.setenv("PARTISCOPE_MAVEN", url)
        assert not lacking(refusal(), *ways), url
    monkeypatch.setenv("PARTISCOPE_MAVEN", "ftp://example.org")
    assert not lacking(refusal(), "PARTISCOPE_MAVEN", "ftp://example.org", "https://")


def test_a_folder_serves_as_repository(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for address, content in repository.files.items():
        file = tmp_path / "my mirror" / address
        file.parent.mkdir(parents=True)
        file.write_bytes(content)
    monkeypatch.setenv("PARTISCOPE_MAVEN", (tmp_path / "my mirror").as_uri())
    assert len(fetch_jars()) == len(JARS)
    assert not repository.asked


def test_a_cache_that_cannot_be_written_is_told(repository: Repository) -> None:
    cache = Path(os.environ["PARTISCOPE_CACHE"])
    cache.mkdir()
    cache.chmod(0o555)
    with as_ordinary_user(), pytest.raises(JarsError) as refused:
        fetch_jars()
    assert not lacking(str(refused.value), str(cache), "PARTISCOPE_CACHE")
    assert not repository.asked


def test_a_spark_of_another_release_is_refused(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector_jars, "version", lambda name: "4.3.0")
    assert not lacking(refusal(), "4.3.0", "4.2.0", "pyspark==4.2.0")
    assert not repository.asked


def test_two_that_fetch_at_once_do_not_disturb_each_other(repository: Repository) -> None:
    threads = [Thread(target=fetch_jars) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [jar.read_bytes() for jar in connector_jars.connector_jars()] == [*CONTENT.values()]
