"""Canonical text of documents: equal documents have equal hashes, so a hash proves which document decided."""

import json
from hashlib import sha256

from pipelines import metrics
from pipelines.decisions.plan import Plan
from pipelines.metrics.definition import Strict


def canonical(document: Strict) -> str:
    """Return the document as JSON with sorted keys, without spaces, and with every default written out."""
    return _serialise(_dump(document))


def fingerprint(document: Strict) -> str:
    """Return the SHA-256 of the canonical text, in hex."""
    return _hash(canonical(document))


def metrics_fingerprint(plan: Plan) -> str:
    """Return the SHA-256, in hex, of the definitions of the plan's metrics and the version of the code that computes
    them.
    """
    definitions = {slug: _dump(metric) for slug, metric in plan.metrics.items()}
    return _hash(_serialise({"version": metrics.VERSION, "metrics": definitions}))


def _dump(model: Strict) -> object:
    return model.model_dump(mode="json", by_alias=True)


def _serialise(data: object) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()
