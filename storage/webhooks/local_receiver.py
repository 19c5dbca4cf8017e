"""The receiver that `tidemark listen --subscribe` runs on this machine.

While it runs, a file in the home names its port. A sandbox's deliveries may then reach this port on the loopback
interface, and they trust the receiver's certificate authority, whose key was discarded. So no setting and no restart is
needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

import msgspec

from pipelines.vocabulary.typed import decode
from storage.core import durable
from storage.core.settings import Environment, Settings

FOLDER: Final = "listen"
AUTHORITY: Final = "ca.pem"
_FILE: Final = "receiver.json"


@dataclass(frozen=True)
class LocalReceiver:
    port: int
    subscription_ids: Sequence[UUID]  # that exist only for it


def announce(home: Path, receiver: LocalReceiver) -> None:
    """Let deliveries reach the receiver."""
    durable.make_folder(home / FOLDER)
    durable.replace(home / FOLDER / _FILE, msgspec.json.encode(receiver))


def remove(home: Path) -> None:
    (home / FOLDER / _FILE).unlink(missing_ok=True)


def find(settings: Settings) -> LocalReceiver | None:
    """Return the receiver that was announced last and not removed; in production None."""
    if settings.environment is not Environment.SANDBOX:
        return None
    try:
        return decode((settings.home / FOLDER / _FILE).read_bytes(), LocalReceiver)
    except (OSError, msgspec.MsgspecError):
        return None


def authority_file(home: Path) -> Path:
    """Return the file with the certificate of the receiver's authority."""
    return home / FOLDER / AUTHORITY
