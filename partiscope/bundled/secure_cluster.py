"""A bundled cluster with logins: its certificate authority, its users, and the rights of each.

Everything lies in one folder of the data directory, for its owner alone. Each user has a client
properties file, as Kafka's own tools take it with ``--command-config``.
"""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from partiscope.bundled.founded_cluster import CA, CA_KEY, LayoutError, write_private

FOLDER: Final = "security"
NODE: Final = "node"
ADMIN: Final = "admin"
EXECUTOR: Final = "executor"
PAGE: Final = "page"
ALERTS: Final = "alerts"
METRICS: Final = "metrics"
COLLECTOR: Final = "collector"
DEMO: Final = "demo"
USERS: Final = (NODE, ADMIN, EXECUTOR, PAGE, ALERTS, METRICS, COLLECTOR, DEMO)
_MODULES: Final = "org.apache.kafka.common.security"
_SCRAM: Final = "SCRAM-SHA-512"
_PASSWORD: Final = re.compile(r'password="([\w-]+)"')


@dataclass(frozen=True, slots=True)
class SecureCluster:
    """Files of the cluster in a data directory."""

    data: Path

    @property
    def folder(self) -> Path:
        """Where they lie."""
        return self.data / FOLDER

    @property
    def ca(self) -> Path:
        """The certificate that clients trust."""
        return self.folder / CA

    def config_of(self, user: str) -> Path:
        """Client properties of one user."""
        return self.folder / f"{user}.properties"

    def _keys_of(self, node_id: int) -> Path:
        return self.folder / f"broker-{node_id}.pem"

    def write_files(self, hosts: Mapping[int, str], *, founds: bool) -> None:
        """Write keys and users; each start gives brokers new certificates. Authority and passwords
        are those with which the cluster was founded.

        Raises:
            LayoutError: the authority or a password is spoilt, or gone from a founded cluster.
            OSError: the disk refused.
        """
        kept = (self.folder / CA_KEY, self.ca, *map(self.config_of, USERS))
        gone = [path for path in kept if not path.exists()]
        if gone and not founds:
            raise LayoutError(
                f"{gone[0]} is gone, and the cluster knows its clients by it. Restore the folder "
                f"{self.folder} from a backup, or choose another --data."
            )
        self.folder.mkdir(mode=0o700, exist_ok=True)
        from partiscope.bundled.certificate_authority import Authority  # other commands need none

        authority = Authority.in_folder(self.folder)
        for node_id, host in hosts.items():
            write_private(self._keys_of(node_id), authority.issue(host))
        for user in USERS:
            write_private(self.config_of(user), self._client_properties(user))

    def _client_properties(self, user: str) -> str:
        password = self._password_of(user) or secrets.token_urlsafe(24)
        return "".join(
            f"{line}\n"
            for line in (
                "security.protocol=SASL_SSL",
                "ssl.truststore.type=PEM",
                f"ssl.truststore.location={self.ca}",
                f"sasl.mechanism={_SCRAM}",
                f"sasl.jaas.config={_MODULES}.scram.ScramLoginModule required "
                f'username="{user}" password="{password}";',
            )
        )

    def _password_of(self, user: str) -> str:
        """Empty: it has none yet."""
        path = self.config_of(user)
        if not path.exists():
            return ""
        found = _PASSWORD.search(path.read_text())
        if found is None:
            raise LayoutError(
                f"{path} holds no password. Restore it: the cluster knows {user} by the old one."
            )
        return found[1]

    def properties(self, node_id: int) -> dict[str, str]:
        """Those of a broker that are about security."""
        login = f'username="{NODE}" password="{self._password_of(NODE)}"'
        users = ";".join(
            f"{_SCRAM}=[name={user},password={self._password_of(user)}]" for user in USERS
        )
        keys = str(self._keys_of(node_id))
        return {
            "listener.security.protocol.map": "SASL_SSL:SASL_SSL,CONTROLLER:SASL_SSL",
            "inter.broker.listener.name": "SASL_SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": keys,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
            "sasl.enabled.mechanisms": _SCRAM,
            "sasl.mechanism.inter.broker.protocol": _SCRAM,
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": (
                f"{_MODULES}.scram.ScramLoginModule required {login};"
            ),
            # Voters elect a leader before any of them can read the users of SCRAM.
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.controller.plain.sasl.jaas.config": (
                f"{_MODULES}.plain.PlainLoginModule required {login} "
                f'user_{NODE}="{self._password_of(NODE)}";'
            ),
            "partiscope.bootstrap.scram": users,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{NODE};User:{ADMIN}",
        }
