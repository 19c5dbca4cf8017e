"""State when a model counts as better than another one, and describe a comparison in words.

`judging` compares. It is a module of its own because it imports SciPy, which takes a third of a second.
"""

from collections.abc import Mapping
from typing import Any

# Our judgement.
MIN_LOWER = 0.95  # share of paired bootstraps in which the log loss must be lower
MAX_AUC_LOST = 0.005  # how much lower the AUC may be


def describe_comparison(comparison: Mapping[str, Any]) -> str:
    """Return one sentence on a comparison (`judging.compare`, with `against`: the other model's name)."""
    change = comparison["aucChange"]
    ranks = "" if change is None else f"; AUC {change:+.4f} (at least {-MAX_AUC_LOST} needed)"
    return (
        f"{'better' if comparison['better'] else 'not better'} than the {comparison['against']}: log loss on unseen "
        f"customers {comparison['logLoss']:.4f}, not {comparison['logLossOfOther']:.4f}, lower in "
        f"{comparison['lowerIn']:.0%} of paired bootstraps ({MIN_LOWER:.0%} needed){ranks}"
    )
