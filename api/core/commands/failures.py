"""One-line messages for expected failures of a command."""

import errno

from pydantic import ValidationError
from sqlalchemy.exc import SQLAlchemyError

from pipelines.vocabulary.errors import TidemarkError
from storage.core.settings import SettingsError


def explain_failure(error: Exception) -> str | None:
    """Return one line that explains an expected error, or None for any other."""
    match error:
        case TidemarkError():
            return error.detail
        case SettingsError():
            return str(error)
        case ValidationError():
            faults = error.errors()
            return "; ".join(f"TIDEMARK_{'_'.join(map(str, fault['loc'])).upper()}: {fault['msg']}" for fault in faults)
        case OSError(errno=errno.ENOSPC | errno.EDQUOT, filename=filename):
            return f"the disk is full{f': {filename} can not be written' if filename else ''}"
        case SQLAlchemyError():
            cause = getattr(error, "orig", None) or error
            first, _, _advice = str(cause).partition("\n")
            return f"the database can't be used: {first}"
    return None
