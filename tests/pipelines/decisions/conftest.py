"""Drawn policies and customers to compare the engine with, interpreted once."""

from collections.abc import Sequence

import pytest

from tests.pipelines.decisions.comparing import Interpreted, cases, interpret


@pytest.fixture(scope="session")
def interpreted_cases() -> Sequence[Interpreted]:
    """60 policies, each with a portfolio of 25 customers."""
    return list(interpret(cases(seed=1, policies=60, customers=25)))
