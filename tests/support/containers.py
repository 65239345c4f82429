"""Podman on this machine, with an image that Dockerfile makes: for tests of compose files.

Nothing can be pulled from a registry of images, so the base is a Debian by debootstrap with this
machine's sources of packages. Images and containers lie in a folder of their own, and go with it.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.support.isolation import MACHINE
from tests.support.node_cluster import CLUSTER_ID, ROOT
from tests.support.patience import patience_s

PROGRAMS: Final = ("podman", "buildah", "runc", "debootstrap", "netavark", "catatonit")
"""Debian: apt-get install podman buildah runc debootstrap netavark aardvark-dns catatonit."""
NETWORK: Final = "partiscope_default"
BASE, IMAGE = "localhost/base", "localhost/partiscope"
_WHERE: Final = f"{MACHINE.get('PATH', '')}:/usr/sbin:/usr/lib/podman:/usr/libexec/podman"
_PACKAGES: Final = "python3,python3-venv,ca-certificates"
_OF_MACHINE: Final = ("/etc/apt/apt.conf.d", "/etc/apt/sources.list.d", "/etc/pip.conf")
"""By these the build reaches the sources of packages that this machine reaches."""
_CONTAINERS_CONF: Final = """\
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
"""
_BUILD_S: Final = patience_s(1_800)
_COMMAND_S: Final = patience_s(240)


class ContainersUnavailableError(Exception):
    """No containers here; the text says what lacks."""


class Podman:
    """Podman with storage of its own, and the image; a context manager that removes both."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        files = {
            "CONTAINERS_CONF": (folder / "containers.conf", _CONTAINERS_CONF),
            "CONTAINERS_STORAGE_CONF": (
                folder / "storage.conf",
                f'[storage]\ndriver = "overlay"\nrunroot = "{folder}/run"\n'
                f'graphroot = "{folder}/graph"\n',
            ),
        }
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in files.values():
            file.write_text(text)
        self.environment = {**MACHINE, **{name: str(file) for name, (file, _) in files.items()}}

    def __enter__(self) -> Self:
        lacks = [it for it in PROGRAMS if shutil.which(it, path=_WHERE) is None]
        if lacks or os.geteuid() != 0:
            raise ContainersUnavailableError(f"needs root and {', '.join(lacks)}")
        if self.run("run", "--rm", IMAGE, "--version", check=False).returncode != 0:
            self._import_base()
            self._build()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.run("system", "reset", "--force", check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """A command of podman."""
        return self._command(["podman", *words], _COMMAND_S, check=check)

    def exec(self, container: str, *words: str, check: bool = True) -> str:
        """Output of a command in a running container."""
        return self.run("exec", container, *words, check=check).stdout

    def _command(
        self, words: Sequence[str], timeout_s: float, *, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            words,
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        told = f"{' '.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert not check or done.returncode == 0, told
        return done

    def _import_base(self) -> None:
        """A Debian with Python, and with what this machine reaches registries by."""
        root = self.folder / "rootfs"
        debootstrap = ("debootstrap", "--variant=minbase", f"--include={_PACKAGES}", "bookworm")
        self._command([*debootstrap, str(root), "http://deb.debian.org/debian"], _BUILD_S)
        for name in filter(os.path.exists, _OF_MACHINE):
            target = root / name.lstrip("/")
            if Path(name).is_dir():
                shutil.copytree(name, target, dirs_exist_ok=True)
            else:
                shutil.copyfile(name, target)
        if certificates := MACHINE.get("SSL_CERT_FILE"):
            shutil.copyfile(certificates, root / "etc/ssl/certs/ca-certificates.crt")
        packed = self.folder / "base.tar"
        self._command(["tar", "-C", str(root), "-cf", str(packed), "."], _BUILD_S)
        self.run("import", str(packed), BASE)
        shutil.rmtree(root)
        packed.unlink()

    def _build(self) -> None:
        flags = ("--isolation", "chroot", "--network", "host", "--layers")
        arguments = ("--build-arg", f"BASE={BASE}", "--build-arg", "EXTRAS=--extra executors")
        self._command(["buildah", "bud", *flags, *arguments, "-t", IMAGE, "."], _BUILD_S)


class Composed:
    """Services of compose files, up; a context manager that takes them down with their volumes."""

    def __init__(self, podman: Podman, *overlays: str, **variables: str) -> None:
        self._podman = podman
        files = ("docker-compose.yml", *(f"deploy/compose/{it}.yml" for it in overlays))
        self._words = [
            *(sys.executable, "-m", "podman_compose"),
            *(word for file in files for word in ("-f", file)),
        ]
        self._environment = {"IMAGE": IMAGE, "SPARK_IMAGE": IMAGE, **variables}

    def __enter__(self) -> Self:
        try:
            self._compose("up", "--detach", "--no-build")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._compose("down", "--volumes")

    def exec(self, service: str, *words: str, check: bool = True) -> str:
        """Output of a command in the container of a service."""
        return self._podman.exec(f"partiscope_{service}_1", *words, check=check)

    def is_healthy(self, service: str) -> bool:
        """What its health check says, asked once: no systemd has a timer for it here."""
        asked = ("healthcheck", "run", f"partiscope_{service}_1")
        return self._podman.run(*asked, check=False).returncode == 0

    def logs(self) -> str:
        """The last lines of each container."""
        names = self._podman.run("ps", "--all", "--format", "{{.Names}}").stdout.split()
        told = ((it, self._podman.run("logs", "--tail", "9", it, check=False)) for it in names)
        return "\n".join(f"--- {name}\n{it.stdout}{it.stderr}" for name, it in told)

    def _compose(self, *words: str) -> None:
        done = subprocess.run(
            [*self._words, *words],
            cwd=ROOT,
            env={**self._podman.environment, **self._environment},
            capture_output=True,
            text=True,
            timeout=_COMMAND_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


class ComposedKafka:
    """Two nodes of real Kafka in the network of the compose files; a context manager."""

    IDS: Final = (1, 2)
    BOOTSTRAP: Final = "kafka-1:9092,kafka-2:9092"
    _START: Final = (
        'java -cp "/libs/*" kafka.tools.StorageTool format -t {cluster} -c /conf/{id}.properties '
        '&& exec java -Xmx512m -cp "/libs/*" kafka.Kafka /conf/{id}.properties'
    )

    def __init__(self, podman: Podman, folder: Path, libs: Path) -> None:
        self._podman = podman
        self._folder = folder
        self._libs = libs

    def __enter__(self) -> Self:
        if self._podman.run("network", "exists", NETWORK, check=False).returncode != 0:
            self._podman.run("network", "create", NETWORK)
        for number in self.IDS:
            self._start(number)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._podman.run("rm", "--force", *(f"kafka-{number}" for number in self.IDS))
        self._podman.run("network", "rm", NETWORK, check=False)

    def tool(self, main_class: str, *words: str) -> str:
        """Output of one of Kafka's own tools."""
        java = ("java", "-cp", "/libs/*", main_class, "--bootstrap-server", self.BOOTSTRAP)
        return self._podman.exec("kafka-1", *java, *words, check=False)

    def _start(self, number: int) -> None:
        properties = {
            "process.roles": "broker,controller",
            "node.id": number,
            "controller.quorum.voters": ",".join(f"{it}@kafka-{it}:9093" for it in self.IDS),
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "advertised.listeners": f"PLAINTEXT://kafka-{number}:9092",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": "/tmp/kafka",
            "offsets.topic.replication.factor": 2,
        }
        text = "".join(f"{name}={value}\n" for name, value in properties.items())
        (self._folder / f"{number}.properties").write_text(text)
        self._podman.run(
            *("run", "--detach", "--name", f"kafka-{number}", "--network", NETWORK, "--user", "0"),
            *("--volume", f"{self._libs}:/libs:ro", "--volume", f"{self._folder}:/conf:ro"),
            *("--entrypoint", "sh", IMAGE, "-c"),
            self._START.format(cluster=CLUSTER_ID, id=number),
        )
