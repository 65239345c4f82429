"""The certificate authority of a bundled cluster, and the certificates of its brokers."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from partiscope.bundled.founded_cluster import CA, CA_KEY, LayoutError, write_private

VALID: Final = datetime.timedelta(days=3650)
BACKDATED: Final = datetime.timedelta(hours=24)
"""Clocks of clients may be behind."""


@dataclass(frozen=True, slots=True)
class Authority:
    """The certificate authority of one cluster."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def in_folder(cls, folder: Path) -> "Authority":
        """The one that lies there, or a new one.

        Raises:
            LayoutError: one of its two files is missing or spoilt.
        """
        paths = (folder / CA_KEY, folder / CA)
        if not any(path.exists() for path in paths):
            authority = cls._created()
            write_private(paths[0], _private(authority.key))
            write_private(paths[1], authority.certificate.public_bytes(Encoding.PEM).decode())
            return authority
        try:
            key = load_pem_private_key(paths[0].read_bytes(), None)
            certificate = x509.load_pem_x509_certificate(paths[1].read_bytes())
        except (OSError, ValueError, TypeError) as error:
            raise LayoutError(
                f"the certificate authority in {folder} cannot be read ({error}). Restore ca.key "
                "and ca.pem from a backup, or choose another --data."
            ) from error
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise LayoutError(f"{paths[0]} is not the key that was made here. Restore it.")
        return cls(key, certificate)

    @classmethod
    def _created(cls) -> "Authority":
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("Partiscope CA")
        usage = x509.KeyUsage(
            digital_signature=False,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        certificate = (
            _builder(key.public_key(), subject=name, issuer=name)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .sign(key, hashes.SHA256())
        )
        return cls(key, certificate)

    def issue(self, host: str) -> str:
        """Key and certificate of a broker that listens at ``host``, as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [_alternative(name) for name in dict.fromkeys((host, "localhost", "127.0.0.1"))]
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        certificate = (
            _builder(key.public_key(), subject=_name("broker"), issuer=self.certificate.subject)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(
                x509.ExtendedKeyUsage(
                    [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
                ),
                critical=False,
            )
            .add_extension(issuer, critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return _private(key) + certificate.public_bytes(Encoding.PEM).decode()


def _builder(
    key: ec.EllipticCurvePublicKey, *, subject: x509.Name, issuer: x509.Name
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + VALID)
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _private(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
