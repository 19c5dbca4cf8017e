"""Findings of a check: faults, and warnings to be acknowledged. Both have the form of any request's faults."""

from typing import TypeAlias

from pipelines.vocabulary.errors import Fault

Finding: TypeAlias = Fault
Problem: TypeAlias = tuple[str, str]  # code and message of a finding whose place is added later


def finding(pointer: str, code: str, message: str) -> Finding:
    """Return the finding with this code and message at this place of the document."""
    return Finding(pointer, f"DecisionPolicy.{code}", message)
