"""What checking finds: a fault, or a warning to be acknowledged. Either is told as faults of any request are."""

from collections.abc import Iterable
from typing import TypeAlias

from pipelines.vocabulary.errors import Fault

Finding: TypeAlias = Fault
Problem: TypeAlias = tuple[str, str]  # its code and message, before it is known where it stands


def finding(pointer: str, code: str, message: str) -> Finding:
    """Where in the document, which, and in words."""
    return Finding(pointer, f"DecisionPolicy.{code}", message)


def pointer_of(steps: Iterable[int | str]) -> str:
    """The JSON pointer of these names and places, from the root."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)
