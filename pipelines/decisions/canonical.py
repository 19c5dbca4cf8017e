"""One text for one document, so that equal ones have equal hashes, and a hash proves what decided."""

import json
from hashlib import sha256

from pipelines import metrics
from pipelines.decisions.plan import Plan
from pipelines.metrics.definition import Strict


def canonical(document: Strict) -> str:
    """JSON with sorted keys, without spaces, and with every default written out."""
    return _text(_dumped(document))


def fingerprint(document: Strict) -> str:
    """SHA-256 of the canonical text, in hex."""
    return _hash(canonical(document))


def metrics_fingerprint(plan: Plan) -> str:
    """SHA-256 of all that says how the plan's metrics are computed: their definitions, and the version of what
    computes them."""
    definitions = {slug: _dumped(metric) for slug, metric in plan.metrics.items()}
    return _hash(_text({"version": metrics.VERSION, "metrics": definitions}))


def _dumped(model: Strict) -> object:
    return model.model_dump(mode="json", by_alias=True)


def _text(data: object) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()
