"""Bodies that are documents of the core, a policy or a ruleset, are described as they are accepted."""

from types import NoneType
from typing import get_args

import pytest
from pydantic import BaseModel

from api.decisions.schemas.policies import SentPolicy
from api.monitoring.schemas import SentRuleset
from pipelines.decisions.policy import Policy
from pipelines.monitoring.ruleset import Ruleset


@pytest.mark.parametrize(("sent", "document"), [(SentPolicy, Policy), (SentRuleset, Ruleset)])
def test_a_field_that_may_be_null_is_described_so(sent: type[BaseModel], document: type[BaseModel]) -> None:
    described = sent.model_json_schema()["properties"]
    nullable = {
        field.alias or name for name, field in document.model_fields.items() if NoneType in get_args(field.annotation)
    }
    assert nullable
    assert {name for name in described if "null" in described[name].get("type", ())} >= nullable
