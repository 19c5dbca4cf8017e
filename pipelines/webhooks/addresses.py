"""Decide which URLs and addresses webhooks may be sent to, so that clients can't make this service call internal ones.

The table of addresses is explicit, because what the standard library calls "private" and "global" differs between
Python versions and does not cover all IPv4 addresses embedded in IPv6. URLs are checked when a subscription is created,
so that mistakes are reported at once. The protection is the check of each address right before connecting, because the
address of a name can change.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final
from urllib.parse import SplitResult, urlsplit

from pipelines.vocabulary.errors import Fault, InvalidRequest

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Source: IANA special-purpose address registries, and the metadata addresses that clouds document.
FORBIDDEN: Final[tuple[Network, ...]] = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT; 100.100.100.200 is Alibaba's metadata
        "127.0.0.0/8",  # loopback
        "161.26.0.0/16",  # IBM's internal services, although the range is public
        "166.8.0.0/14",  # IBM's, too
        "168.63.129.16/32",  # Azure's host, although the address is public
        "169.254.0.0/16",  # link-local; 169.254.169.254 is the metadata of most clouds, 169.254.0.23 Tencent's
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments; 192.0.0.192 is Oracle's metadata
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarking
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        "::/96",  # unspecified, loopback, IPv4-compatible
        "::ffff:0:0/96",  # IPv4-mapped
        "::ffff:0:0:0/96",  # IPv4-translated
        "64:ff9b::/96",  # NAT64
        "64:ff9b:1::/48",  # NAT64, local use
        "100::/64",  # discard
        "100:0:0:1::/64",  # dummy
        "2001::/23",  # protocol assignments: Teredo 2001::/32, benchmarking 2001:2::/48, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
        "5f00::/16",  # segment routing
        "fc00::/7",  # unique local; fd00:ec2::254 is Amazon's metadata, fd20:ce::254 Google's
        "fe80::/10",  # link-local
        "fec0::/10",  # site-local
        "ff00::/8",  # multicast
        "::/3",  # this and the next two: the rest outside of 2000::/3, which IANA has not assigned
        "4000::/2",
        "8000::/1",
    )
)

TRANSLATED: Final = tuple(IPv6Network(text) for text in ("::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48"))
ISATAP: Final = (0x0000_5EFE, 0x0200_5EFE)  # the third 32 bits of an address that ends with an IPv4 address
LOOPBACKS: Final = (IPv4Address("127.0.0.1"), IPv6Address("::1"))

# HTTPS receivers use port 443 or an unprivileged port, except the usual ports of internal services.
HTTPS_PORT: Final = 443
FIRST_FREE_PORT: Final = 1024
INTERNAL_PORTS: Final = frozenset(
    {
        *(1433, 1521, 3306, 5432, 5984, 6379, 9042, 9200, 9300, 11211, 27017),  # databases, caches, search
        *(2181, 4369, 5672, 9092, 15672, 61616),  # brokers
        *(2049, 3260, 3389, 5900, 5985, 5986, 6000),  # file shares and screens
        *(2375, 2376, 2379, 2380, 4243, 6443, 8500, 10250, 10255),  # containers and their control planes
    }
)


@dataclass(frozen=True)
class Ports:
    """The ports that receivers may have: those in `ranges`, except the `excluded` ones."""

    ranges: tuple[range, ...]
    excluded: frozenset[int] = frozenset()

    def __contains__(self, port: int) -> bool:
        return port not in self.excluded and any(port in some for some in self.ranges)


USUAL_PORTS: Final = Ports((range(HTTPS_PORT, HTTPS_PORT + 1), range(FIRST_FREE_PORT, 2**16)), excluded=INTERNAL_PORTS)

MAX_URL_CHARACTERS: Final = 2_048  # our judgement
MAX_NAME_CHARACTERS: Final = 253  # RFC 1035 allows 255 bytes, including the lengths of the first label and the root
_LABEL: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")


@dataclass(frozen=True)
class Reach:
    """The addresses that webhooks may reach: public ones, and those that the operator allows.

    Args:
        allowed: networks whose addresses may be called although they are private or this machine's own.
        own_names: names of this machine, which are treated like `localhost`.
        is_own: whether an address is this machine's.
    """

    allowed: Sequence[Network] = ()
    ports: Ports = USUAL_PORTS
    own_names: Sequence[str] = ()
    is_own: Callable[[Address], bool] = lambda _: False

    def allows(self, address: Address, port: int) -> bool:
        """Return whether a webhook may be sent to this address and port."""
        return port in self.ports and self.allows_address(address)

    def allows_address(self, address: Address) -> bool:
        """Return whether a webhook may be sent to the address on some port."""
        if is_forbidden(address, self.allowed):
            return False
        return _is_within(address, self.allowed) or not self.is_own(address)


def is_forbidden(address: Address, allowed: Sequence[Network]) -> bool:
    """Return whether webhooks may not be sent to `address`.

    An address that embeds another is refused if either is. The operator's `allowed` networks make an exception for the
    addresses in them, but never for an address that is only embedded in one of theirs.
    """
    return any(_is_within(part, FORBIDDEN) and not _is_within(part, allowed) for part in _unwrap(address))


def parse_address(text: str) -> Address:
    """Parse the address that a socket would connect to. A scope (`fe80::1%eth0`) is ignored.

    Raises:
        ValueError: not an address.
    """
    return ip_address(text.partition("%")[0])


def _is_within(address: Address, networks: Sequence[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def _unwrap(address: Address) -> Iterator[Address]:
    """Yield the address, and every IPv4 address embedded in it."""
    yield address
    if isinstance(address, IPv4Address):
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if _is_within(address, TRANSLATED) or int(address) >> 32 & 0xFFFF_FFFF in ISATAP:
        yield IPv4Address(int(address) & 0xFFFF_FFFF)


def check_webhook_url(url: str, reach: Reach) -> str:
    """Check that webhooks may be sent to a URL, and return it with scheme and host in lower case.

    The URL must be absolute HTTPS in printable ASCII, with a host and without credentials or fragment. The host is a
    name, or an address in its usual spelling. Other spellings that resolvers accept (`127.1`, `2130706433`,
    `0x7f000001`, `0177.0.0.1`) are refused.

    Raises:
        InvalidRequest: `Webhook.UrlNotHttps`, `Webhook.UrlInvalid` or `Webhook.UrlForbidden`.
    """
    parts = _split_url(url)
    if parts.scheme != "https":
        raise _refusal("Webhook.UrlNotHttps", "webhookUrl must be an absolute https:// URL.")
    host = _read_host(parts)
    _check_port(parts, reach.ports)
    if _leads_inside(host, reach):
        raise _refusal("Webhook.UrlForbidden", "webhookUrl must not lead to a private or reserved address.")
    shown = f"[{host}]" if isinstance(host, IPv6Address) else str(host)
    port = "" if parts.port is None else f":{parts.port}"
    query = f"?{parts.query}" if parts.query else ""
    return f"https://{shown}{port}{parts.path}{query}"


def _split_url(url: str) -> SplitResult:
    if len(url) > MAX_URL_CHARACTERS:
        raise _invalid_url(f"webhookUrl must not be longer than {MAX_URL_CHARACTERS} characters.")
    if any(not "!" <= character <= "~" or character == "\\" for character in url):
        raise _invalid_url("webhookUrl must be printable ASCII without spaces or backslashes.")
    try:
        return urlsplit(url)
    except ValueError:
        raise _invalid_url("webhookUrl is not a URL.") from None


def _read_host(parts: SplitResult) -> Address | str:
    if not parts.hostname:
        raise _invalid_url("webhookUrl must name a host.")
    if "@" in parts.netloc or parts.fragment:
        raise _invalid_url("webhookUrl must hold no credentials and no fragment.")
    try:
        return _parse_host(parts.hostname, bracketed="[" in parts.netloc)
    except ValueError:
        raise _invalid_url("webhookUrl must have a host name, or an address in its usual spelling.") from None


def _parse_host(host: str, bracketed: bool) -> Address | str:
    if bracketed:
        return IPv6Address(_require_no_scope(host))
    name = host.removesuffix(".")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):  # some resolvers would read it as an address
        return IPv4Address(name)
    if len(name) > MAX_NAME_CHARACTERS or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError
    return name


def _require_no_scope(host: str) -> str:
    if "%" in host:
        raise AddressValueError("an address with a scope is only valid on this machine")
    return host


def _check_port(parts: SplitResult, ports: Ports) -> None:
    try:
        port = HTTPS_PORT if parts.port is None else parts.port
    except ValueError:
        raise _invalid_url("webhookUrl has an invalid port.") from None
    if port not in ports:
        raise _refusal(
            "Webhook.UrlForbidden",
            "webhookUrl must use a port that webhooks may be sent to: by default 443, or one from 1024 on that is not "
            "usual for an internal service.",
        )


def _leads_inside(host: Address | str, reach: Reach) -> bool:
    if not isinstance(host, str):
        return not reach.allows_address(host)
    own = host == "localhost" or host.endswith(".localhost") or host in (name.lower() for name in reach.own_names)
    return own and all(is_forbidden(loopback, reach.allowed) for loopback in LOOPBACKS)


def _invalid_url(detail: str) -> InvalidRequest:
    return _refusal("Webhook.UrlInvalid", detail)


def _refusal(code: str, detail: str) -> InvalidRequest:
    return InvalidRequest(code, detail, (Fault("/webhookUrl", code, detail),))
