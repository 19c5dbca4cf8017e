"""Who may give access to others: signed-in users, and only what they have themselves."""

from collections.abc import Iterable

from api.http.dependencies import Caller
from pipelines.vocabulary.errors import Forbidden

USER_NEEDED = "Authorization.UserNeeded"
NOT_HELD = "Authorization.NotHeld"


def require_user(caller: Caller) -> None:
    """Refuse an API key as the caller: otherwise a stolen key could create others that outlive it.

    Raises:
        Forbidden: the caller is a key.
    """
    if not caller.is_user:
        raise Forbidden(USER_NEEDED, "An API key can't give or take access. Sign in to the console.")


def require_held(caller: Caller, scopes: Iterable[str]) -> None:
    """Require that the caller has all scopes that it grants.

    Raises:
        Forbidden: it lacks one.
    """
    if missing := sorted(set(scopes) - caller.scopes):
        raise Forbidden(NOT_HELD, f"These scopes are not yours to grant: {', '.join(missing)}.")
