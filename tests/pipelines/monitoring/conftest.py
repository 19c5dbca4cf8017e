"""Drawn rulesets and customers, evaluated once for the tests of the package."""

from collections.abc import Sequence

import pytest

from tests.pipelines.monitoring.comparing import Interpreted, cases, interpret


@pytest.fixture(scope="package")
def evaluations() -> Sequence[Interpreted]:
    """Drawn rulesets and customers, with the oracle's results."""
    return list(interpret(cases(seed=8, count=45, rulesets=4, customers=12)))
