"""A real schema registry: Apicurio from Maven Central, which serves Confluent's API as well."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import tarfile
import urllib.request
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

from spark_metrics.job.connector_jars import cache_folder
from tests.support.certificates import make_certificate
from tests.support.isolation import MACHINE
from tests.support.kafka_oracle import QUICK_START, OracleUnavailableError
from tests.support.patience import WAIT_S, patience_s
from tests.support.ports import free_ports
from tests.support.settle import wait_until

VERSION: Final = "3.0.9"
"""The newest that runs on Java 17."""
START_TIMEOUT_S: Final = 90.0
USER: Final = "operator"
PASSWORD: Final = 'a "quoted" word: ü'
_ARTIFACT: Final = "io.apicurio:apicurio-registry-app"
_JAR: Final = f"apicurio-registry-app-{VERSION}-runner.jar"


def registry_home() -> Path:
    """Folder with the registry; fetched by Maven on the first call, then kept.

    Raises:
        OracleUnavailableError: with what is missing.
    """
    home = cache_folder() / "schema-registry" / VERSION
    if (home / _JAR).exists():
        return home
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise OracleUnavailableError(f"`{program}` is not installed: the registry needs it")
    part = home.with_name(f"{VERSION}.part")
    part.mkdir(parents=True, exist_ok=True)
    packed = part / "packed"
    done = subprocess.run(
        [
            *("mvn", "-q", "-B", "dependency:copy"),
            *(f"-Dartifact={_ARTIFACT}:{VERSION}:tar.gz:all", f"-DoutputDirectory={packed}"),
        ],
        env=MACHINE,
        capture_output=True,
        text=True,
        timeout=patience_s(600),
        check=False,
        cwd=part,
    )
    if done.returncode != 0:
        raise OracleUnavailableError(f"Maven could not fetch the registry: {done.stdout[-500:]}")
    (archive,) = packed.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(part, filter="data")
    shutil.rmtree(packed)
    part.rename(home)
    return home


class SchemaRegistryServer:
    """One registry on loopback, in memory; a context manager. With a folder it speaks TLS alone
    (its certificate is ``ca``), and wants ``USER`` with ``PASSWORD``."""

    def __init__(self, secure: Path | None = None) -> None:
        (self._port,) = free_ports(1)
        self._secure = secure
        self.ca: Path | None = None
        self._key: Path | None = None
        if secure is not None:
            self.ca, self._key = make_certificate(secure, "registry")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where Confluent's API is."""
        scheme = "http" if self._secure is None else "https"
        return f"{scheme}://127.0.0.1:{self._port}/apis/ccompat/v7"

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [
                *("java", "-Xmx256m", *QUICK_START),
                *(f"-D{name}={value}" for name, value in self._settings().items()),
                *("-jar", str(registry_home() / _JAR)),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_until(self._is_ready, "the schema registry answers", timeout_s=START_TIMEOUT_S)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _settings(self) -> dict[str, str]:
        host = {"quarkus.http.host": "127.0.0.1"}
        if self._secure is None:
            return {**host, "quarkus.http.port": str(self._port)}
        users, every = "quarkus.security.users.embedded", "quarkus.http.auth.permission.all"
        return {
            **host,
            "quarkus.http.ssl-port": str(self._port),
            "quarkus.http.ssl.certificate.files": str(self.ca),
            "quarkus.http.ssl.certificate.key-files": str(self._key),
            "quarkus.http.insecure-requests": "disabled",
            "quarkus.http.auth.basic": "true",
            f"{users}.enabled": "true",
            f"{users}.plain-text": "true",
            f"{users}.users.{USER}": PASSWORD,
            f"{users}.roles.{USER}": "sr-admin",
            f"{every}.paths": "/*",
            f"{every}.policy": "authenticated",
        }

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, "the schema registry ended"
        try:
            self._ask("subjects")
        except OSError:
            return False
        return True

    def register(
        self,
        subject: str,
        schema: str,
        *,
        kind: str = "AVRO",
        references: Sequence[Mapping[str, Any]] = (),
    ) -> int:
        """The id of a schema under a new version of its subject."""
        body = {"schema": schema, "schemaType": kind, "references": list(references)}
        return int(self._ask(f"subjects/{subject}/versions", body)["id"])

    def _ask(self, path: str, body: object = None) -> Any:
        request = urllib.request.Request(
            f"{self.url}/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"content-type": "application/vnd.schemaregistry.v1+json"},
        )
        context = None
        if self.ca is not None:
            context = ssl.create_default_context(cafile=str(self.ca))
            pair = b64encode(f"{USER}:{PASSWORD}".encode()).decode()
            request.add_header("authorization", f"Basic {pair}")
        with urllib.request.urlopen(request, timeout=WAIT_S, context=context) as answer:
            return json.load(answer)
