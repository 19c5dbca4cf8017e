"""Certificates for an HTTPS receiver on this machine, for development.

Webhooks go to HTTPS only, so a receiver needs a certificate authority that the service can trust. The authority signs
one certificate, for loopback. Trusting it is safe, because the authority's key is then thrown away.
"""

from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from storage.core import durable
from storage.webhooks.local_receiver import AUTHORITY

VALID_FOR: Final = timedelta(days=397)  # browsers accept at most 398
RENEW_BEFORE: Final = timedelta(days=30)


def for_this_machine(folder: Path) -> tuple[Path, Path]:
    """Return the paths of the authority's certificate and of the receiver's (with its key). Make them if needed."""
    authority, receiver = folder / AUTHORITY, folder / "receiver.pem"
    if not _usable(authority, receiver):
        durable.make_folder(folder)
        authority_pem, receiver_pem = _make_certificates(datetime.now(UTC))
        durable.replace(receiver, receiver_pem)
        durable.replace(authority, authority_pem)
    return authority, receiver


def _usable(authority: Path, receiver: Path) -> bool:
    """Return whether both exist, belong together, and stay valid for RENEW_BEFORE."""
    try:
        issuer = x509.load_pem_x509_certificate(authority.read_bytes())
        own = x509.load_pem_x509_certificate(receiver.read_bytes())
        own.verify_directly_issued_by(issuer)
    except (OSError, ValueError, TypeError, InvalidSignature):
        return False
    return min(issuer.not_valid_after_utc, own.not_valid_after_utc) > datetime.now(UTC) + RENEW_BEFORE


def _make_certificates(now: datetime) -> tuple[bytes, bytes]:
    """Return two PEM files: an authority's certificate; and the receiver's key, with the certificate that it signed."""
    authority_key, receiver_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    name = _name("Tidemark development receiver CA")
    own = _certificate_builder(name, name, authority_key, now)
    authority = _with_authority_extensions(own).sign(authority_key, hashes.SHA256())
    issued = _certificate_builder(_name("Tidemark development receiver"), name, receiver_key, now)
    receiver = _with_loopback_extensions(issued, authority_key).sign(authority_key, hashes.SHA256())
    private = receiver_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return _pem(authority), private + _pem(receiver)


def _certificate_builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + VALID_FOR)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _with_authority_extensions(builder: x509.CertificateBuilder) -> x509.CertificateBuilder:
    usage = x509.KeyUsage(
        key_cert_sign=True,
        crl_sign=True,
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    constraints = x509.BasicConstraints(ca=True, path_length=0)
    return builder.add_extension(constraints, critical=True).add_extension(usage, critical=True)


def _with_loopback_extensions(
    builder: x509.CertificateBuilder, authority: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    names = [
        x509.DNSName("localhost"),
        x509.IPAddress(IPv4Address("127.0.0.1")),
        x509.IPAddress(IPv6Address("::1")),
    ]
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
    return (
        builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(issuer, critical=False)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
