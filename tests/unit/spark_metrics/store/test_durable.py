"""A place where two writers could overwrite each other is told at the start: an object store that
takes ``If-None-Match`` and overwrites all the same, and a disk without hard links."""

import errno
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from spark_metrics.store.durable import require_put_if_absent
from spark_metrics.store.files import StoreFiles
from spark_metrics.store.writer import StoreWriter
from spark_metrics.window.errors import StoreUnfitError


class Overwriting(BaseHTTPRequestHandler):
    """Keeps what is put, whatever the condition; it knows nothing else of S3."""

    protocol_version = "HTTP/1.1"
    kept: dict[str, bytes] = {}  # noqa: RUF012 (one for all requests)
    conditions: list[str | None] = []  # noqa: RUF012

    def do_PUT(self) -> None:
        self.kept[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.conditions.append(self.headers["If-None-Match"])
        self.send_response(200)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Tests are quiet."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Overwriting) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_store_that_overwrites_is_refused(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, "us-east-1")
    with pytest.raises(StoreUnfitError, match="honours conditional writes"):
        require_put_if_absent(StoreFiles("s3://overwriting/store"))
    assert Overwriting.conditions == ["*", "*"]


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP, errno.ENOSYS])
def test_a_disk_without_hard_links_is_refused_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patched:
        patched.setattr(os, "link", refuse)
        with pytest.raises(StoreUnfitError, match="hard links"):
            StoreWriter(str(tmp_path / "store"))
    StoreWriter(str(tmp_path / "store"))
    assert {path.name for path in (tmp_path / "store").iterdir()} == {
        "now", "history", "commits", "bad",
    }  # fmt: skip
