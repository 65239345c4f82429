"""An OpenSSH server of our own on loopback: own port, own host key, one login key, no service."""

import getpass
import os
import shlex
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from tests.support.patience import WAIT_S
from tests.support.ports import free_ports
from tests.support.settle import wait_until

_WHERE: Final = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))
_PRIVILEGES: Final = Path("/run/sshd")
"""Where OpenSSH, run by root, locks its unprivileged child in."""


LOGGED_IN: Final = "logged in"
"""What the session says before it runs the command: until then it is SSH's time."""


def why_no_ssh() -> str:
    """What lacks for such a server, and how to get it; empty: nothing."""
    lacking = [name for name in ("sshd", "ssh", "ssh-keygen") if not _program(name)]
    return f"no {', '.join(lacking)}: apt-get install openssh-server" if lacking else ""


class SshServer:
    """A context manager; ``command`` runs something through it."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="sshd-"))
        (self.port,) = free_ports(1)
        self._make_key("host_key")
        self._make_key("login_key")
        shutil.copy(self._folder / "login_key.pub", self._folder / "authorized_keys")
        settings = {
            "Port": self.port,
            "ListenAddress": "127.0.0.1",
            "HostKey": self._folder / "host_key",
            "AuthorizedKeysFile": self._folder / "authorized_keys",
            "StrictModes": "no",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "UsePAM": "no",
            "PidFile": "none",
        }
        config = self._folder / "sshd_config"
        config.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
        if os.geteuid() == 0:
            _PRIVILEGES.mkdir(mode=0o755, exist_ok=True)
        self._log = self._folder / "log"
        self._process = subprocess.Popen(
            [_program("sshd"), "-D", "-f", str(config), "-E", str(self._log)]
        )

    def __enter__(self) -> Self:
        wait_until(self._answers, "sshd listens", story=self.told)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(WAIT_S)
        shutil.rmtree(self._folder)

    def command(self, argv: Sequence[str]) -> list[str]:
        """The client that runs this on the server, on a terminal."""
        options = {
            "IdentitiesOnly": "yes",
            "StrictHostKeyChecking": "no",
            "UserKnownHostsFile": "/dev/null",
            "LogLevel": "ERROR",
        }
        given = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        key = str(self._folder / "login_key")
        login = f"{getpass.getuser()}@127.0.0.1"
        reach = ["-F", "none", "-i", key, "-p", str(self.port), *given]
        words = f"echo {shlex.quote(LOGGED_IN)}; exec {shlex.join(argv)}"
        return [_program("ssh"), "-tt", *reach, login, words]

    def told(self) -> str:
        """What the server logged."""
        return self._log.read_text() if self._log.exists() else ""

    def _make_key(self, name: str) -> None:
        command = [_program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f"]
        subprocess.run([*command, str(self._folder / name)], check=True)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1.0):
                return True
        except OSError:
            return False


def _program(name: str) -> str:
    return shutil.which(name, path=_WHERE) or ""
