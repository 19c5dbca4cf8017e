"""Find out whether an address is this machine's own, on any interface: only own addresses can be bound to."""

import socket
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from pipelines.webhooks.addresses import Address

# Reserved and documentation addresses, which no machine has. If even they can be bound (`ip_nonlocal_bind`), binding
# proves nothing.
UNASSIGNED: Final[dict[int, Address]] = {4: IPv4Address("240.0.0.1"), 6: IPv6Address("3fff:fff:ffff::1")}


def owns(address: Address) -> bool:
    """Return whether the address is this machine's, as far as the system shows it."""
    return _can_bind(address) and not _can_bind(UNASSIGNED[address.version])


def _can_bind(address: Address) -> bool:
    family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as trial:
            trial.bind((str(address), 0))
    except OSError:
        return False
    return True
