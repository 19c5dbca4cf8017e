"""When a model is better than another one, and a comparison in words. `judging` compares; only it needs SciPy."""

from collections.abc import Mapping
from typing import Any

LEAST_LOWER = 0.80  # of paired bootstraps; our judgement, like the next
MOST_AUC_LOST = 0.005


def in_words(comparison: Mapping[str, Any]) -> str:
    """Return one sentence on the comparison, for people and for the audit trail."""
    change = comparison["aucChange"]
    ranks = "" if change is None else f"; AUC {change:+.4f} (at least {-MOST_AUC_LOST} needed)"
    return (
        f"{'better' if comparison['better'] else 'not better'} than the {comparison['against']}: log loss on unseen "
        f"customers {comparison['logLoss']:.4f}, not {comparison['logLossOfOther']:.4f}, lower in "
        f"{comparison['lowerIn']:.0%} of paired bootstraps ({LEAST_LOWER:.0%} needed){ranks}"
    )
