"""A real S3 server (versitygw) on 127.0.0.1, over a folder, for tests."""

import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Final, Self

import pytest

from tests.support.go_program import GoUnavailableError, install_go_program
from tests.support.patience import WAIT_S, patience_s
from tests.support.ports import free_ports

PACKAGE: Final = "github.com/versity/versitygw/cmd/versitygw"
VERSION: Final = "v1.8.0"
BUCKET: Final = "figures"
START_TIMEOUT_S: Final = patience_s(30.0)


class S3Server:
    """One bucket; ``environment`` is all that a client needs to find it and to be let in."""

    def __init__(self, base_dir: Path, version: str = VERSION) -> None:
        self._base_dir = base_dir
        self._program = _server_or_skip(version)
        (self._port,) = free_ports(1)
        self._process: subprocess.Popen[bytes] | None = None
        self.environment = {
            "AWS_ACCESS_KEY_ID": "tests",
            "AWS_SECRET_ACCESS_KEY": "only-tests-know-it",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._port}",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def url(self, folder: str) -> str:
        return f"s3://{BUCKET}/{folder}"

    def __enter__(self) -> Self:
        (self._base_dir / BUCKET).mkdir(parents=True)
        keys = {
            "ROOT_ACCESS_KEY": self.environment["AWS_ACCESS_KEY_ID"],
            "ROOT_SECRET_KEY": self.environment["AWS_SECRET_ACCESS_KEY"],
        }
        with (self._base_dir.parent / "s3.log").open("wb") as log:
            self._process = subprocess.Popen(
                [self._program, "--port", f"127.0.0.1:{self._port}", "posix", str(self._base_dir)],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **keys},
            )
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline_s:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    return self
            time.sleep(0.05)
        raise AssertionError("no S3 server: see s3.log")

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(WAIT_S)


def _server_or_skip(version: str) -> Path:
    try:
        return install_go_program(PACKAGE, version)
    except GoUnavailableError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no S3 server to test with: {error}")
