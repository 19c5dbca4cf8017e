"""Passwords of users, hashed with Argon2id. A check takes some 50 ms and 64 MiB on purpose."""

from functools import cache

from pwdlib import PasswordHash

from pipelines.vocabulary.errors import InvalidRequest

SHORTEST = 12  # characters; NIST SP 800-63B-4 asks for 15 for a password alone and 8 beside another factor
LONGEST = 256  # so that hashing a password has a bounded cost


def hash_password(password: str) -> str:
    """Return the hash to store.

    Raises:
        InvalidRequest: the password is too short or too long.
    """
    if not SHORTEST <= len(password) <= LONGEST:
        raise InvalidRequest("User.WeakPassword", f"A password has {SHORTEST} to {LONGEST} characters.")
    return _hasher().hash(password)


def verify_password(password: str, stored: str | None) -> bool:
    """Return whether the password has this hash.

    Without a hash, return False after the same time, so that the time doesn't show who has a password.
    """
    if len(password) > LONGEST:
        return False
    return _hasher().verify(password, stored or _hash_of_nobody()) and stored is not None


@cache
def _hasher() -> PasswordHash:
    return PasswordHash.recommended()


@cache
def _hash_of_nobody() -> str:
    return _hasher().hash("")
