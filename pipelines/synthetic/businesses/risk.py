"""Why businesses fail: the causal model behind the transactions and the outcome.

Five causes are drawn before any money moves, and nobody sees them on a statement:

    strength    margin and growth: the stronger, the less of turnover goes to suppliers, the more takings grow
    leverage    how much of turnover the business has promised to lenders; the weak borrow a little more
    volatility  how much takings swing from month to month and from day to day
    shock       an event (a road closed, a customer lost, an illness) that takes a share of turnover for some months
    prudence    the owner's: reserves kept, drawings held back, own money lent in a pinch, no betting

They drive the transactions: strength, volatility and shock through the takings of each day (`takings`), leverage
through instalments (`borrowing`), prudence through opening reserves and habits (`habits`, `ledger`). Dishonours,
arrears, missed wages, late tax and falling balances follow when money runs out; they are never drawn at random.
`stress` adds the causes up. Above two thresholds a business counts as distressed or failing, and its takings decline.
Adverse rows in sound businesses, and their absence in failing ones (`circumstances`), are not causes: they affect the
outcome only through the money that they move.

The outcome, 90 days or more past due on a facility within 12 months after the window, has the probability

    logit p = -2.8 - 0.65 strength + 4.5 leverage + 2.5 (volatility - 0.25) + 2.2 shock × recency
              + 1.6 (0.6 - prudence) - 0.9 cushion + 0.015 days past due

where recency halves every eight months between the shock's end and the window's end, cushion is what is left at the
end (cash, unused limits and what a related company holds, less what is held for others) in months of turnover, between
-0.5 and 1.5, and days past due (at most 120) is the worst facility's. So the same causes act twice: through what is
seen (cushion and arrears are their consequences), and directly. No single sign on the statements decides. The weights
are assumptions, not estimates from any portfolio; they are set so that about one business in twelve defaults. Every
business is taken to have at least the facility that it applies for.
"""

from math import exp
from random import Random

from pipelines.synthetic.world.model import Condition, Latents, Outcome

DISTRESSED_FROM = 1.35  # stress of about the worst 15 %, failing ones included
FAILING_FROM = 2.2  # stress of about the worst 4 %
START_UPS = 0.09  # share of the portfolio


def draw_causes(rng: Random) -> Latents:
    """Draw a business's latent state."""
    strength = rng.gauss(0, 1)
    has_shock = rng.random() < 0.22
    return Latents(
        strength=strength,
        leverage=max(0.0, rng.gauss(0.075 - 0.01 * strength, 0.05)),
        volatility=min(0.8, 0.24 * rng.lognormvariate(0, 0.35)),
        prudence=rng.betavariate(4, 2.5),
        shock=rng.uniform(0.15, 0.6) if has_shock else 0.0,
        shock_at=rng.random(),
        shock_months=rng.uniform(2, 8),
    )


def stress(latents: Latents) -> float:
    """Return the weighted sum of the causes: roughly normal, from about -2.5 to 3."""
    return (
        -latents.strength
        + 5 * (latents.leverage - 0.075)
        + 1.5 * (0.6 - latents.prudence)
        + 1.5 * (latents.volatility - 0.25)
        + 1.8 * latents.shock
    )


def draw_condition(rng: Random, latents: Latents) -> Condition:
    """Return the condition by the stress. Some of the businesses that are neither failing nor distressed are new."""
    pressed = stress(latents)
    if pressed >= FAILING_FROM:
        return "failing"
    if pressed >= DISTRESSED_FROM:
        return "distressed"
    return "start_up" if rng.random() < START_UPS else "sound"


def draw_outcome(
    rng: Random, latents: Latents, cushion_months: float, days_past_due: int, months_since_shock: float
) -> Outcome:
    """Draw the outcome of the next twelve months from the probability that the module's formula gives."""
    recency = 0.5 ** (max(0.0, months_since_shock) / 8)
    logit = (
        -2.8
        - 0.65 * latents.strength
        + 4.5 * latents.leverage
        + 2.5 * (latents.volatility - 0.25)
        + 2.2 * latents.shock * recency
        + 1.6 * (0.6 - latents.prudence)
        - 0.9 * min(1.5, max(-0.5, cushion_months))
        + 0.015 * min(120, days_past_due)
    )
    probability = 1 / (1 + exp(-logit))
    return Outcome(rng.random() < probability, probability, latents)
