"""Loaded by Schemathesis itself, in its own process.

Requests made from examples and by enumeration get ids that exist, and good ones a new idempotency key, where the schema
alone would make a 404 or a 422 of every good request.
"""

import json
import os
from itertools import cycle
from typing import Any
from uuid import uuid4

import schemathesis
from schemathesis import Case, HookContext
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation import GenerationMode
from schemathesis.generation.meta import TestPhase

OWN_IDS = "TIDEMARK_TEST_OWN_IDS"  # lists by the name of a parameter, or of a list in a body, as JSON
KEY = "Idempotency-Key"

sets = json.loads(os.environ[OWN_IDS])  # the n-th ids of all lists belong together
own = {name: cycle(ids) for name, ids in sets.items()}


@schemathesis.hook
def before_call(_context: HookContext, case: Case[Any], _kwargs: dict[str, Any]) -> None:
    if is_good(case, ParameterLocation.HEADER) and KEY in case.headers:
        case.headers[KEY] = str(uuid4())
    if case.meta and case.meta.phase.name not in (TestPhase.EXAMPLES, TestPhase.COVERAGE):
        return
    if is_good(case, ParameterLocation.PATH):
        case.path_parameters |= {name: next(own[name]) for name in case.path_parameters}
    if is_good(case, ParameterLocation.BODY) and isinstance(case.body, dict):
        case.body |= with_own_ids(case.body, case.path_parameters.get("customerId"))


def is_good(case: Case[Any], place: ParameterLocation) -> bool:
    """Whether what stands there is as the schema asks."""
    made = case.meta.components.get(place) if case.meta else None
    return made is None or made.mode is GenerationMode.POSITIVE


def with_own_ids(body: dict[str, Any], customer_id: object) -> dict[str, Any]:
    """The lists of ids in a body, each as long as it was, and single ids of what is the customer's in the path."""
    nth = sets["customerId"].index(customer_id) if customer_id in sets["customerId"] else 0
    known = {name: sent for name, sent in body.items() if name in own and sent}
    return {
        name: [next(own[name]) for _ in sent] if isinstance(sent, list) else sets[name][nth]
        for name, sent in known.items()
    }
