"""Real Kafka that wants Kerberos tickets, and the KDC on loopback that gives them."""

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.support.kafka_oracle import KafkaCluster
from tests.support.patience import WAIT_S
from tests.support.ports import free_ports
from tests.support.settle import wait_until

REALM: Final = "PARTISCOPE.TEST"
SERVICE: Final = "kafka/127.0.0.1"
CLIENT: Final = "operator"
_SBIN: Final = "/usr/sbin:/usr/lib/mit/sbin:/usr/kerberos/sbin"
_PROGRAMS: Final = ("krb5kdc", "kdb5_util", "kadmin.local")


def missing_programs() -> list[str]:
    """Of MIT Kerberos, those that are not installed."""
    return [name for name in _PROGRAMS if _program(name) is None]


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{_SBIN}")


class Kdc:
    """A realm of its own in a folder; a context manager."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_ports(1)[0]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def config(self) -> Path:
        """For clients and for Java."""
        return self._folder / "krb5.conf"

    @property
    def service_keytab(self) -> Path:
        """Of the brokers."""
        return self._folder / "kafka.keytab"

    @property
    def client_keytab(self) -> Path:
        """Of ``operator``."""
        return self._folder / "operator.keytab"

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to get tickets by itself."""
        return {
            "KRB5_CONFIG": str(self.config),
            "KRB5_CLIENT_KTNAME": str(self.client_keytab),
            "KRB5CCNAME": f"FILE:{self._folder / 'tickets'}",
        }

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True)
        self._write_configs()
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "of the database")
        for principal, keytab in ((SERVICE, self.service_keytab), (CLIENT, self.client_keytab)):
            self._run("kadmin.local", "-q", f"addprinc -randkey {principal}")
            self._run("kadmin.local", "-q", f"ktadd -k {keytab} {principal}")
        log = self._folder / "kdc.log"
        with log.open("wb") as out:
            command = (str(_program("krb5kdc")), "-n")
            self._process = subprocess.Popen(command, env=self._env(), stdout=out, stderr=out)
        wait_until(
            lambda: b"commencing operation" in log.read_bytes(), "the KDC runs", story=log.read_text
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(WAIT_S)

    def _write_configs(self) -> None:
        here = f"127.0.0.1:{self._port}"
        self.config.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n"
            " dns_lookup_realm = false\n dns_canonicalize_hostname = false\n rdns = false\n"
            " udp_preference_limit = 1\n"
            f"[realms]\n {REALM} = {{\n  kdc = {here}\n }}\n"
            f"[domain_realm]\n 127.0.0.1 = {REALM}\n"
        )
        (self._folder / "kdc.conf").write_text(
            f"[kdcdefaults]\n kdc_listen = {here}\n kdc_tcp_listen = {here}\n"
            f"[realms]\n {REALM} = {{\n  database_name = {self._folder / 'principal'}\n"
            f"  key_stash_file = {self._folder / 'stash'}\n"
            f"  acl_file = {self._folder / 'acl'}\n }}\n"
            "[logging]\n kdc = STDERR\n"
        )

    def _env(self) -> dict[str, str]:
        profile = str(self._folder / "kdc.conf")
        return {**os.environ, "KRB5_CONFIG": str(self.config), "KRB5_KDC_PROFILE": profile}

    def _run(self, name: str, *words: str) -> None:
        command = (str(_program(name)), *words)
        done = subprocess.run(
            command, env=self._env(), capture_output=True, text=True, timeout=WAIT_S, check=False
        )
        assert done.returncode == 0, (command, done.stderr)


@dataclass
class KerberosKafka(KafkaCluster):
    """One node whose clients log in by ticket; to itself it speaks plainly."""

    brokers: int = 1
    kdc: Kdc = field(kw_only=True)

    def __post_init__(self) -> None:
        self.jvm_flags = (*self.jvm_flags, f"-Djava.security.krb5.conf={self.kdc.config}")
        self._between = free_ports(1)[0]

    @property
    def plain_bootstrap(self) -> str:
        """Where nobody must log in."""
        return f"127.0.0.1:{self._between}"

    def properties(self, node_id: int) -> dict[str, str]:
        """With a listener for tickets and one for the node itself."""
        client = f"SASL_PLAINTEXT://127.0.0.1:{self.ports[node_id]}"
        between = f"BETWEEN://{self.plain_bootstrap}"
        controller = f"CONTROLLER://127.0.0.1:{self.controller_ports[node_id]}"
        return {
            **super().properties(node_id),
            "listeners": f"{client},{between},{controller}",
            "advertised.listeners": f"{client},{between}",
            "listener.security.protocol.map": (
                "SASL_PLAINTEXT:SASL_PLAINTEXT,BETWEEN:PLAINTEXT,CONTROLLER:PLAINTEXT"
            ),
            "inter.broker.listener.name": "BETWEEN",
            "sasl.enabled.mechanisms": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": (
                "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true "
                f'storeKey=true keyTab="{self.kdc.service_keytab}" '
                f'principal="{SERVICE}@{REALM}";'
            ),
        }

    def wait_ready(self) -> None:
        """Until the node answers who needs no ticket."""
        tickets, self.ports = self.ports, {self.first_id: self._between}
        try:
            super().wait_ready()
        finally:
            self.ports = tickets
