"""The tokens that open Dagster's pages: an operator's, who may act, and a reader's, who may only view.

Each is a file of the home that only its user may open, made on first use. Replacing a file and starting again makes the
old token, and every session that began with it, worthless.
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
    """Who is signed in."""

    OPERATOR = "operator"
    READER = "reader"


def token_file(settings: Settings, role: Role) -> Path:
    return settings.home / f"{role}.token"


def token(settings: Settings, role: Role) -> str:
    """Return the role's token.

    Raises:
        SettingsError: its file is empty, or others may read it.
    """
    path = token_file(settings, role)
    if not path.exists():
        with suppress(FileExistsError):  # another process was first
            durable.create(path, secrets.token_urlsafe(TOKEN_BYTES).encode())
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise SettingsError(f"{path} may be read by others: chmod 600 it")
    text = path.read_text().strip()
    if not text:
        raise SettingsError(f"{path} is empty: remove it, and a new one is made")
    return text


def tokens(settings: Settings) -> dict[Role, str]:
    return {role: token(settings, role) for role in Role}
