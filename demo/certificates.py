"""A certificate authority of a few lines, for throw-away certificates: the demo's, and the tests'."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAYS = dt.timedelta(days=365)


class LocalAuthority:
    """Signs certificates; `ca.pem` in `folder` is what those who trust it need."""

    def __init__(self, folder: Path, name: str = "shardgate demo CA") -> None:
        self.folder = folder
        self.ca = folder / "ca.pem"
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        now = dt.datetime.now(dt.UTC)
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        builder = _builder(
            self._name, self._name, self._key, self._key, now - dt.timedelta(days=2), now + _DAYS
        )
        certificate = (
            builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.ca.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(
        self,
        names: tuple[str, ...] = ("localhost", "127.0.0.1", "::1"),
        *,
        file: str = "server",
        start: dt.timedelta = dt.timedelta(days=-1),
        end: dt.timedelta = _DAYS,
        client: bool = False,
    ) -> tuple[Path, Path]:
        """A certificate for hosts (or, with `client`, for a user) and its key: `FILE-cert.pem`,
        `FILE-key.pem`, the key last and readable by nobody else. `start` and `end` count from now.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        now = dt.datetime.now(dt.UTC)
        builder = _builder(_name(names[0]), self._name, key, self._key, now + start, now + end)
        use = ExtendedKeyUsageOID.CLIENT_AUTH if client else ExtendedKeyUsageOID.SERVER_AUTH
        certificate = (
            builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([_general(one) for one in names]), critical=False)
            .add_extension(x509.ExtendedKeyUsage([use]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        paths = self.folder / f"{file}-cert.pem", self.folder / f"{file}-key.pem"
        paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        paths[1].touch(mode=0o600)
        paths[1].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return paths


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer_key: ec.EllipticCurvePrivateKey,
    start: dt.datetime,
    end: dt.datetime,
) -> x509.CertificateBuilder:
    """A certificate without what tells hosts, users and authorities apart."""
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
        )
    )
