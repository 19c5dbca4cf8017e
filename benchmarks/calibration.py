"""Report how well stated probabilities agree with how often they are right."""

import polars as pl

from benchmarks.table import Row
from pipelines.enrichment.training.evaluation import calibration_error, chance_error, reliability


def measure_calibration(what: str, confidence: pl.Series, right: pl.Series, counted: str = "rows") -> list[Row]:
    """Return the calibration error, beside that of a perfectly calibrated source, and a row for each bin.

    Args:
        what: which probability it is.
        counted: what has a probability, in the plural.
    """
    bins = reliability(confidence, right)
    error = f"{calibration_error(bins):.3f} (perfectly calibrated: {chance_error(confidence):.3f})"
    return [
        Row(f"{what}: calibration error of {len(right):,} {counted}", error, "≤ 0.05"),
        *(
            Row(
                f"{what} from {each.from_:.2f}: its mean, share that is right, {counted}",
                f"{each.confidence:.3f}, {each.accuracy:.3f}, {each.rows:,}",
            )
            for each in bins
        ),
    ]
