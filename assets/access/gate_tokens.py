"""The tokens for Dagster's pages: the operator's token allows every action, the reader's only viewing.

Each is in a file of the home that only the system user of the service may open, created on first use. To invalidate a
token and all sessions that began with it, replace the file and restart.
"""

import secrets
import stat
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from storage.core import durable
from storage.core.settings import Settings, SettingsError

TOKEN_BYTES = 32


class Role(StrEnum):
    """What a signed-in person may do."""

    OPERATOR = "operator"
    READER = "reader"


def token_file(settings: Settings, role: Role) -> Path:
    return settings.home / f"{role}.token"


def token(settings: Settings, role: Role) -> str:
    """Return the role's token.

    Raises:
        SettingsError: the file is empty, or other users may read it.
    """
    path = token_file(settings, role)
    if not path.exists():
        with suppress(FileExistsError):  # another process was first
            durable.create(path, secrets.token_urlsafe(TOKEN_BYTES).encode())
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise SettingsError(f"other users may read {path}: run `chmod 600` on it")
    text = path.read_text().strip()
    if not text:
        raise SettingsError(f"{path} is empty: remove it, and a new token is created at the next start")
    return text


def tokens(settings: Settings) -> dict[Role, str]:
    return {role: token(settings, role) for role in Role}
