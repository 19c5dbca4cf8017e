"""Fit how sharp the probabilities of kinds of income are, on people of the part `calibration`.

    python -m benchmarks.income_sharpness    # writes pipelines/enrichment/income/calibration.yaml

Their payers and wordings are neither those that the evidence was written for nor those that the bench measures.
"""

from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.income import MONTHS, UNTIL, generate_people, match_payers
from pipelines.enrichment import income
from pipelines.enrichment.income import PAYER, PAYERS, PROBABILITIES, weigh_kinds
from pipelines.enrichment.income.kinds import CALIBRATION
from pipelines.figures.income import income_rows, regular_payers

PEOPLE, SEED = 1_600, 20_261_128
CANDIDATES = np.geomspace(0.5, 2, 57)
_FILE = Path(income.__file__).with_name(CALIBRATION)
_TEXT = """\
# Factor of the log-odds of kinds of income, fitted by `python -m benchmarks.income_sharpness` to make the true kinds
# likeliest. Payments that are no income count as `regular`.
sharpness: {sharpness:.2f}
fitted_on: {{part: calibration, people: "{people:,}", seed: "{seed}", months: "{months}", until: "{until}", \
payers: "{payers:,}"}}
"""


def fit_sharpness() -> tuple[float, int]:
    """Return the factor under which the true kinds are likeliest, and of how many payers."""
    facts, payments = generate_people("calibration", PEOPLE, SEED)
    true_kind = pl.when("is_right").then("true_kind").otherwise(pl.lit("regular"))
    true = match_payers(facts, payments).select(*PAYER, kind_true=true_kind)
    payers, rows = regular_payers(facts).select(PAYERS.names()), income_rows(facts)
    likelihoods = [_measure_likelihood(weigh_kinds(payers, rows, each), true) for each in CANDIDATES]
    return float(CANDIDATES[np.argmax(likelihoods)]), true.height


def _measure_likelihood(weighed: pl.DataFrame, true: pl.DataFrame) -> float:
    own = pl.coalesce(pl.when(pl.col("kind_true") == kind).then(name) for kind, name in PROBABILITIES.items())
    return float(weighed.join(true, on=PAYER, validate="1:1").select(own.log().mean()).item())


if __name__ == "__main__":
    fitted, payers = fit_sharpness()
    text = _TEXT.format(sharpness=fitted, people=PEOPLE, seed=SEED, months=MONTHS, until=UNTIL, payers=payers)
    _FILE.write_text(text, "utf-8")
    print(text)  # noqa: T201
