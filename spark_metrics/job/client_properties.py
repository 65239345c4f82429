"""TLS and SASL of the brokers that hold the metrics topic, from a client properties file.

Spark's own Kafka client takes the properties as they are; aiokafka, which reads beside it, takes
what follows from them.
"""

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from broker.named_file import NamedFileError, read_text
from spark_metrics.window.errors import MetricsError

FLAG: Final = "--command-config"
_PASSWORDS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_OPTION: Final = re.compile(r'\b(username|password)="((?:[^"\\]|\\.)*)"')


def _unusable(why: str) -> MetricsError:
    return MetricsError(
        f"{FLAG} cannot be used",
        why=why,
        what_next="name a properties file with PEM stores and a password login",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProperties:
    """How the job reaches the brokers; without properties in plain text."""

    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def from_file(cls, path: Path) -> "ClientProperties":
        """Those of a file of ``NAME=VALUE`` lines.

        :raises MetricsError: it cannot be read, or names what only Java can open.
        """
        try:
            lines = (line.strip() for line in read_text(path, FLAG).splitlines())
        except NamedFileError as error:
            raise _unusable(str(error)) from error
        pairs = (line.partition("=") for line in lines if line and line[0] not in "#!")
        properties = {name.strip(): value.strip() for name, _, value in pairs}
        for store in ("ssl.truststore", "ssl.keystore"):
            if f"{store}.location" in properties and properties.get(f"{store}.type") != "PEM":
                raise _unusable(f"{path}: {store}.location is not PEM; set {store}.type=PEM")
        mechanism = properties.get("sasl.mechanism", "PLAIN")
        if mechanism not in _PASSWORDS:
            raise _unusable(f"{path}: {mechanism} is none of {', '.join(_PASSWORDS)}")
        return cls(properties=properties)

    def of_spark(self) -> dict[str, str]:
        """Options of Spark's connector."""
        return {f"kafka.{name}": value for name, value in self.properties.items()}

    def of_aiokafka(self) -> dict[str, Any]:
        """Keyword arguments of every aiokafka class.

        :raises OSError: a certificate cannot be read.
        """
        protocol = self.properties.get("security.protocol", "PLAINTEXT")
        options: dict[str, Any] = {"security_protocol": protocol}
        if protocol.endswith("SSL"):
            options["ssl_context"] = self._ssl_context()
        if protocol.startswith("SASL"):
            jaas = dict(_OPTION.findall(self.properties.get("sasl.jaas.config", "")))
            plain = {name: re.sub(r"\\(.)", r"\1", text) for name, text in jaas.items()}
            options |= {
                "sasl_mechanism": self.properties.get("sasl.mechanism", "PLAIN"),
                "sasl_plain_username": plain.get("username"),
                "sasl_plain_password": plain.get("password"),
            }
        return options

    def _ssl_context(self) -> ssl.SSLContext:
        properties = self.properties
        context = ssl.create_default_context(cafile=properties.get("ssl.truststore.location"))
        context.check_hostname = bool(
            properties.get("ssl.endpoint.identification.algorithm", "https")
        )
        if keys := properties.get("ssl.keystore.location"):
            context.load_cert_chain(keys, password=properties.get("ssl.key.password"))
        return context
