"""Real Kafka behind SASL_SSL with ACLs: certificates of its own, users by PLAIN, SCRAM and bearer
tokens; a second listener that wants client certificates."""

import base64
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
)
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from control.kafka.connection.settings import KafkaSettings
from partiscope.connections import ConnectionSettings
from tests.support.certificates import make_certificate
from tests.support.kafka_oracle import START_TIMEOUT_S, KafkaCluster, run_tool
from tests.support.patience import WAIT_S
from tests.support.ports import free_ports
from tests.support.settle import wait_until

ADMIN: Final = "admin"
VIEWER: Final = "viewer"
OPERATORS: Final = tuple(f"operator{number}" for number in range(18))
"""They log in by PLAIN only."""
EVERYBODY: Final = "*"
PASSWORD: Final = 'a "quoted" word'
CLIENT: Final = "client"
"""Whoever has its certificate may do everything."""
_HOUR_S: Final = 3_600
_JAAS: Final = "org.apache.kafka.common.security"


def unsecured_token(user: str, age_s: int = 120) -> str:
    """A bearer token as Kafka's development module takes it: nobody has signed it; for an hour."""
    issued_s = int(time.time()) - age_s
    parts = ({"alg": "none"}, {"sub": user, "iat": issued_s, "exp": issued_s + _HOUR_S})
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()) for part in parts)
    return ".".join((*(part.decode().rstrip("=") for part in encoded), ""))


@dataclass
class SecureKafka(KafkaCluster):
    """Nodes whose clients must log in; who is not ``admin`` may do what ACLs say."""

    brokers: int = 1
    certificate_ports: dict[int, int] = field(default_factory=dict)
    """Of the listeners that want client certificates."""

    @property
    def certificate_bootstrap(self) -> str:
        """``host:port,…`` of those."""
        return ",".join(f"127.0.0.1:{port}" for port in self.certificate_ports.values())

    @property
    def client_certificate(self) -> Path:
        """With its key; the brokers trust it."""
        return self.base_dir / f"{CLIENT}-both.pem"

    def client_properties(self, user: str = VIEWER) -> Path:
        """What a user's own tools of Kafka take as ``--command-config``."""
        path = self.base_dir / f"{user}.properties"
        quoted = PASSWORD.replace('"', r"\\\"")
        path.write_text(
            "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
            f"sasl.jaas.config={_JAAS}.plain.PlainLoginModule required "
            f'username="{user}" password="{quoted}";\n'
            f"ssl.truststore.type=PEM\nssl.truststore.location={self.ca}\n"
        )
        return path

    @property
    def ca(self) -> Path:
        """What clients must trust."""
        return self.base_dir / "server.pem"

    def connection(self, user: str = VIEWER, **others: Any) -> KafkaSettings:
        """How a user connects, as settings make it."""
        given = {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-256",
            "username": user,
            "password": PASSWORD,
            "ssl_cafile": self.ca,
            **others,
        }
        return ConnectionSettings.model_validate(given).to_kafka(self.bootstrap)

    def admin(self) -> AdminClient:
        """A client that may do everything."""
        return AdminClient(self.admin_config)

    @property
    def admin_config(self) -> dict[str, Any]:
        """How a client of librdkafka that may do everything connects."""
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": ADMIN,
            "sasl.password": PASSWORD,
            "ssl.ca.location": str(self.ca),
            "log_level": 0,
        }

    def grant(self, *rights: tuple[ResourceType, str, AclOperation], user: str = VIEWER) -> None:
        """Let the user do these things; ``*`` names every topic or group."""
        bindings = [
            AclBinding(
                kind,
                name,
                ResourcePatternType.LITERAL,
                f"User:{user}",
                "*",
                operation,
                AclPermissionType.ALLOW,
            )
            for kind, name, operation in rights
        ]
        admin = self.admin()
        admin.list_topics(timeout=WAIT_S)
        for future in admin.create_acls(bindings).values():
            future.result(WAIT_S)

    def revoke(self, kind: ResourceType, name: str, operation: AclOperation) -> None:
        """Take back what was granted."""
        granted = AclBindingFilter(
            kind,
            name,
            ResourcePatternType.LITERAL,
            f"User:{VIEWER}",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        admin = self.admin()
        admin.list_topics(timeout=WAIT_S)
        for future in admin.delete_acls([granted]).values():
            assert future.result(WAIT_S), f"{operation} on {name} was not granted"

    def prepare_node(self, node_id: int) -> None:
        """Certificate and users go into the formatted directory."""
        if not self.ca.exists():
            server, _ = make_certificate(self.base_dir, "server")
            client, _ = make_certificate(self.base_dir, CLIENT)
            self._trusted.write_text(server.read_text() + client.read_text())
        config = str(self.config_file(node_id))
        flags = ("format", "-t", self.cluster_id, "-c", config, *self._scram_flags())
        done = run_tool("kafka.tools.StorageTool", *flags, version=self.version)
        assert done.returncode == 0, done.stderr

    @property
    def _trusted(self) -> Path:
        return self.base_dir / "trusted.pem"

    def _scram_flags(self) -> Iterable[str]:
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            yield "--add-scram"
            yield f"{mechanism}=[name={VIEWER},password={PASSWORD}]"

    def properties(self, node_id: int) -> dict[str, str]:
        """Its listeners, mechanisms, certificate and authorizer."""
        certificates = self.certificate_ports.setdefault(node_id, free_ports(1)[0])
        client = f"SASL_SSL://127.0.0.1:{self.ports[node_id]},SSL://127.0.0.1:{certificates}"
        word = PASSWORD.replace('"', r"\\\"")
        users = " ".join(f'user_{user}="{word}"' for user in (ADMIN, VIEWER, *OPERATORS))
        plain = f'username="{ADMIN}" password="{word}" {users}'
        return {
            **super().properties(node_id),
            "listeners": f"{client},CONTROLLER://127.0.0.1:{self.controller_ports[node_id]}",
            "advertised.listeners": client,
            "listener.security.protocol.map": "SASL_SSL:SASL_SSL,SSL:SSL,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "SASL_SSL",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "listener.name.ssl.ssl.client.auth": "required",
            "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": (
                f"{_JAAS}.oauthbearer.OAuthBearerLoginModule required "
                f'unsecuredLoginStringClaim_sub="{ADMIN}";'
            ),
            "listener.name.sasl_ssl.plain.sasl.jaas.config": (
                f"{_JAAS}.plain.PlainLoginModule required {plain};"
            ),
            "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": (
                f"{_JAAS}.scram.ScramLoginModule required;"
            ),
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": (
                f"{_JAAS}.scram.ScramLoginModule required;"
            ),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.base_dir / "server-both.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._trusted),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            # The controllers' own listener is plain, so they are nobody to each other.
            "super.users": f"User:{ADMIN};User:CN={CLIENT};User:ANONYMOUS",
        }

    def wait_ready(self) -> None:
        """Until the running nodes are registered."""
        admin = self.admin()

        def are_registered() -> bool:
            dead = [node for node, process in self.processes.items() if process.poll() is not None]
            assert not dead, f"Kafka nodes {dead} ended at start\n{self.story()}"
            try:
                return admin.list_topics(timeout=2).brokers.keys() >= self.processes.keys()
            except KafkaException:
                return False

        wait_until(are_registered, "Kafka is ready", timeout_s=START_TIMEOUT_S, story=self.story)
