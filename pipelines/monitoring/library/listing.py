"""The library as Markdown: `docs/reference/monitoring-library.md`."""

from collections.abc import Iterator, Mapping

from pipelines.decisions.authoring.words import describe_condition
from pipelines.metrics import Metric
from pipelines.monitoring.library import LibraryRuleset
from pipelines.monitoring.ruleset import Baseline, MonitoringRule, Ruleset, SinceDate

_RULES = ("Rule", "Severity", "Message", "Fires when", "Again after")
_METRICS = ("Name", "Slug", "Unit", "Window", "History needed", "Maximum age", "Meaning")


def as_markdown(library: Mapping[str, LibraryRuleset]) -> str:
    parsed = {slug: Ruleset.model_validate(each.document) for slug, each in library.items()}
    contents = (f"| [{each.name}](#{slug}) | {library[slug].about} |" for slug, each in parsed.items())
    sections = (line for slug, each in parsed.items() for line in _section(slug, each))
    return "\n".join([*_introduction(len(parsed)), *_table(("Ruleset", "Fires when")), *contents, "", *sections])


def _introduction(count: int) -> Iterator[str]:
    yield "# Ruleset library"
    yield ""
    yield f"The {count} rulesets that come with Tidemark. This file is generated from the documents in"
    yield "[`pipelines/monitoring/library`](../../pipelines/monitoring/library) by"
    yield "`tidemark rulesets library --markdown > docs/reference/monitoring-library.md`: don't edit it."
    yield "[Monitoring](../how-to/monitoring.md) explains rulesets, [metrics](metrics.md) the registry's metrics."
    yield ""
    yield "A ruleset watches no customers until you adopt it: `tidemark rulesets adopt SLUG --client CLIENT`, with"
    yield "`--inactive` to simulate it first. Thresholds are a starting point; their reasons and limits are below. To"
    yield "change one, write the documents with `tidemark rulesets library --write FOLDER`, edit, and push. Rulesets"
    yield "are muted for customers whose attribute `hardship_flag` is true; customers without it are watched."
    yield "Windows in days end at the customer's last row. No rule uses a personal characteristic."
    yield ""


def _section(slug: str, ruleset: Ruleset) -> Iterator[str]:
    yield from (f"## {ruleset.name}", "", f'<a id="{slug}"></a>`{slug}`', "")
    for paragraph in ruleset.notes.split("\n"):
        yield from (paragraph, "")
    yield from (*_table(_RULES), *map(_rule, ruleset.rules), "")
    for rule in ruleset.rules:
        yield f"Recommended for `{rule.code}`: {' '.join(rule.recommended_actions)}"
        yield ""
    if ruleset.baseline is not None:
        yield from (_baseline(ruleset.baseline), "")
    if ruleset.metrics:
        yield from ("Metrics of its own:", "", *_table(_METRICS), *map(_metric, ruleset.metrics), "")


def _table(columns: tuple[str, ...]) -> tuple[str, str]:
    return f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"


def _rule(rule: MonitoringRule) -> str:
    again = "–" if rule.repeat_after_days is None else f"{rule.repeat_after_days} days"
    cells = (f"`{rule.code}`", rule.severity, rule.message, describe_condition(rule.condition), again)
    return f"| {' | '.join(cells)} |"


def _baseline(baseline: Baseline) -> str:
    since = baseline.since
    day = since.date.isoformat() if isinstance(since, SinceDate) else f"the day in the attribute `{since.attribute}`"
    read = ", ".join(f"`{each.slug}` is `{each.of}`" for each in baseline.metrics)
    return f"As of {day}: {read}."


def _metric(metric: Metric) -> str:
    history = f"{metric.history_days} days" if metric.history_days else "–"
    fresh = "–" if metric.fresh_days is None else f"{metric.fresh_days} days"
    cells = (metric.name, f"`{metric.slug}`", metric.unit, metric.window, history, fresh, metric.meaning)
    return f"| {' | '.join(cells)} |"
