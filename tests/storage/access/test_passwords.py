"""Passwords are hashed with Argon2id, at the cost that its RFC recommends, and verified."""

from storage.access.passwords import hash_password, verify_password


def test_only_the_password_of_a_hash_is_verified() -> None:
    stored = hash_password("correct horse battery")
    assert stored.startswith("$argon2id$v=19$m=65536,t=3,p=4$")  # RFC 9106, 4: the second recommended option
    assert verify_password("correct horse battery", stored)
    assert not verify_password("correct horse batterz", stored)
    assert not verify_password("", None)
