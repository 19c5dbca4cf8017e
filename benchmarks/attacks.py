"""Measure what attacks and honest lookalikes change in the ratings of synthetic customers.

Each row has today's figures and, in the last column, those of the first run, before any rule looked for attacks. The
first run is stored in `attacks_first.json`, which `python -m benchmarks.attacks COMMIT` wrote. Don't run that again: it
would overwrite the first run.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from api.decisions.commands.attack import synthetic_subjects
from benchmarks.table import Row
from pipelines.attacks.attack import Manipulation
from pipelines.attacks.registry import attacks, lookalikes
from pipelines.trials import results
from pipelines.trials.trial import try_manipulations

TITLE = "Attacks on ratings"
CUSTOMERS, ATTACKED, SEED = 300, 100, 20_261_125
FIRST = Path(__file__).parent / "attacks_first.json"
ABOUT = (
    f"{CUSTOMERS} synthetic customers rated untouched on the day they apply, the first {ATTACKED} of them also after "
    "every attack and every lookalike (an honest change that looks the same) that they can have. An attack improves a "
    f"result if it yields a better grade, a value lower by at least {results.WORTH_VALUE}, a limit higher by at least "
    f"{results.WORTH_LIMIT} % or a better verdict of the shipped policy working-capital-loan; customers rated A "
    "untouched are not counted. "
    "With evidence: a better grade where the rows show the attack (a forger who corrects all balances leaves no "
    "evidence in them). It is noticed if there is a finding or a reason that the untouched customer doesn't have, or a "
    "worse grade. \\*: written without knowledge of the rules. The last column is the first run, before there were "
    "rules; it also counts attacks that left no evidence among those to be noticed. More: "
    "`tidemark attack --synthetic --customers N`."
)
HELD_OUT = r"\*"  # an asterisk in Markdown
_IMPROVED = ("grade", "value", "limit", "verdict")


def measure() -> Sequence[Row]:
    return list(_rows(measure_trial(), json.loads(FIRST.read_text())["measured"]))


def measure_trial() -> dict[str, Any]:
    every: list[Manipulation] = [*attacks().values(), *lookalikes().values()]
    subjects = synthetic_subjects(CUSTOMERS, SEED)
    ratings = try_manipulations(subjects, lambda place: every if place < ATTACKED else (), SEED)
    return results.report(ratings, every)


def _rows(now: Mapping[str, Any], first: Mapping[str, Any]) -> Iterator[Row]:
    untouched, before = now["untouched"], first["untouched"]
    yield Row("untouched: AUC of the value", f"{untouched['auc']:.3f}", f"{before['auc']:.3f}")
    yield Row("untouched: rated A or B", _percent(untouched["good"]), _percent(before["good"]))
    yield Row("untouched: with a finding", _percent(untouched["found"]), _percent(before["found"]))
    yield Row("the same, unless it says truly that an account is missing", _percent(untouched["falseAlarm"]), "≤ 3 %")
    for kind, describe in (("attacks", _describe_attack), ("lookalikes", _describe_lookalike)):
        earlier = {each["slug"]: describe(each) for each in first[kind]}
        for each in now[kind]:
            yield Row(_name(each), describe(each), earlier.get(each["slug"], "–"))


def _name(each: Mapping[str, Any]) -> str:
    about = each.get("detectability") or f"looks like {each['resembles']}"
    return f"{each['slug']}{HELD_OUT if each['heldOut'] else ''} ({about})"


def _describe_attack(each: Mapping[str, Any]) -> str:
    improved = ", ".join(f"{name} {_percent(each[name])}" for name in _IMPROVED)
    shown = (
        f"; with evidence {_percent(each['gradeShown'])} of {each['belowBestShown']}" if "gradeShown" in each else ""
    )
    noticed = f"noticed {_percent(each['noticed'])} of {each['withEvidence']}"
    return f"of {each['belowBest']}: {improved}{shown}; {noticed}"


def _describe_lookalike(each: Mapping[str, Any]) -> str:
    return f"of {each['customers']}: finding {_percent(each['found'])}, new reason {_percent(each['newReason'])}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


if __name__ == "__main__":
    FIRST.write_text(json.dumps({"commit": sys.argv[1], "measured": measure_trial()}, indent=1) + "\n")
