"""Which addresses are this machine's own, on whichever interface: one can bind to them, and to no other."""

import socket
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from pipelines.webhooks.addresses import Address

# Reserved, and for documentation: nobody's. Where even they can be bound (`ip_nonlocal_bind`), binding tells nothing.
NOBODYS: Final[dict[int, Address]] = {4: IPv4Address("240.0.0.1"), 6: IPv6Address("3fff:fff:ffff::1")}


def owns(address: Address) -> bool:
    """Whether it is this machine's, as far as the system tells."""
    return _binds(address) and not _binds(NOBODYS[address.version])


def _binds(address: Address) -> bool:
    family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as trial:
            trial.bind((str(address), 0))
    except OSError:
        return False
    return True
