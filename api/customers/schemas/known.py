"""What a caller knows of the history of what it changes, so that it does not undo a change that it has not seen."""

from typing import Annotated

from api.core.schemas.common import Received
from api.core.schemas.rules import whole_parameter

MAX_CHANGES = 1_000_000_000


class Known(Received):
    known_changes: Annotated[
        int | None,
        whole_parameter(
            "knownChanges",
            "Customer.InvalidKnownChanges",
            0,
            MAX_CHANGES,
            "Change something only if the history still has this `totalCount`. Without it, what others have changed "
            "since it was read may be lost.",
        ),
    ] = None
