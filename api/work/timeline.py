"""Entries of a customer's timeline, each as a sentence and the ids that it concerns."""

from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from api.work.schemas.records import TimelineEntryView
from pipelines.pages import drop_none
from pipelines.pages.wording import day, label, moment, quantity, spell_out
from storage.core.models import Flow, JobStatus
from storage.work.items import ItemAction, ItemKind
from storage.work.timeline import Entry, EntryKind

Shown = Mapping[str, Any]

RECEIVED = {
    Flow.ENRICHMENT: "Transactions were submitted.",
    Flow.EXTRACTION: "PDF statements were submitted.",
    Flow.RETRACTION: "The retraction of a submission was requested.",
}
FAILED = {
    Flow.ENRICHMENT: "The submission failed",
    Flow.EXTRACTION: "The submission failed",
    Flow.RETRACTION: "The retraction failed",
    Flow.REPORT_REFRESH: "The reports could not be computed",
}
WORKED = {
    ItemAction.ACKNOWLEDGE: "was acknowledged",
    ItemAction.SNOOZE: "was snoozed",
    ItemAction.CLOSE: "was closed",
    ItemAction.REOPEN: "was opened again",
    ItemAction.ASSIGN: "was assigned",
}


def describe_entry(entry: Entry, zone: ZoneInfo) -> TimelineEntryView:
    """Describe an entry. Times in its sentence are in the zone."""
    kind = entry.place.kind
    shown: Shown = {
        name: value.astimezone(zone) if isinstance(value, datetime) else value for name, value in entry.shown.items()
    }
    ids = {name: shown.get(name) for name in TimelineEntryView.model_fields if name.endswith("_id")}
    if kind is EntryKind.WORKED:
        is_alert = shown["item_kind"] == ItemKind.ALERT
        ids["match_id" if is_alert else "evaluation_id"] = shown["item_id"]
    return TimelineEntryView(kind=kind, date=entry.place.at, who=entry.who, sentence=SENTENCES[kind](shown), **ids)


def _describe_work(shown: Shown) -> str:
    verb = ItemAction(shown["action"])
    what = "An alert" if shown["item_kind"] == ItemKind.ALERT else "A decision"
    done = "is assigned to nobody any more" if verb is ItemAction.ASSIGN and shown["assignee"] is None else WORKED[verb]
    until = f" until {moment(shown['until'])}" if shown["until"] else ""
    return f"{what} {done}{until}" + (f": {shown['reason']}" if shown["reason"] else ".")


def _describe_alert(shown: Shown) -> str:
    rules = ", ".join(spell_out(code.lower()) for code in shown["rules"])
    return f"The ruleset {shown['ruleset_name']} raised an alert: {rules}."


def _describe_evaluation(shown: Shown) -> str:
    what = "What-if" if shown["what_if"] else "Decision"
    return f"{what} by {shown['policy_name']}, version {shown['version']}: {spell_out(shown['outcome'])}."


def _describe_override(shown: Shown) -> str:
    return f"{shown['decided_by']} overrode a decision: {spell_out(shown['outcome'])}."


def _describe_receipt(shown: Shown) -> str:
    return RECEIVED[Flow(shown["flow"])]


def _describe_end(shown: Shown) -> str:
    flow = Flow(shown["flow"])
    if shown["status"] == JobStatus.FAILED:
        return f"{FAILED[flow]}: {shown['error']['message']}" if shown["error"] else f"{FAILED[flow]}."
    if flow is Flow.REPORT_REFRESH:
        return "Reports were computed."
    if flow is Flow.RETRACTION:
        return "A submission was retracted."
    counts = [quantity(shown["enriched_rows"] or 0, "new row")]
    if shown["duplicate_rows"]:
        counts.append(quantity(shown["duplicate_rows"], "duplicate"))
    if shown["rejected_rows"]:
        counts.append(f"{shown['rejected_rows']:,} rejected")
    return f"The submission was processed: {', '.join(counts)}."


def _statement(shown: Shown) -> str:
    dates: list[date] = [shown[name] for name in ("period_start", "period_end") if shown[name] is not None]
    period = f", {' to '.join(map(day, dates))}" if dates else ""
    bank = shown["bank_name"] or "an unknown bank"
    return f"A statement of {bank} was read{period}: {quantity(shown['row_count'], 'row')}."


def _correction(verb: str) -> Callable[[Shown], str]:
    def sentence(shown: Shown) -> str:
        to = (spell_out(shown["category"]) if shown["category"] is not None else None, shown["counterparty_name"])
        return f"A correction was {verb}: {', '.join(drop_none(*to))}."

    return sentence


def _attribute(shown: Shown) -> str:
    unit = spell_out(shown["name"]).rpartition(" ")[2]
    name = label(shown["name"], unit if unit in ("days", "months") else None)
    return f"An attribute was {'removed' if shown['value'] is None else 'set'}: {name}."


def _describe_resolution(shown: Shown) -> str:
    what = "An event" if shown["kind"] == "event" else "A finding"
    if shown["reason"] is None:
        return f"The resolution of {what.lower()} was revoked."
    return f"{what} was resolved: {shown['reason']}"


def _always(sentence: str) -> Callable[[Shown], str]:
    return lambda _: sentence


SENTENCES: Mapping[EntryKind, Callable[[Shown], str]] = {
    EntryKind.WORKED: _describe_work,
    EntryKind.RAISED: _describe_alert,
    EntryKind.OVERRIDDEN: _describe_override,
    EntryKind.EVALUATED: _describe_evaluation,
    EntryKind.NOTE_DELETED: _always("A note was deleted."),
    EntryKind.NOTE_ADDED: _always("A note was added."),
    EntryKind.ATTACHMENT_DELETED: _always("An attachment was deleted."),
    EntryKind.ATTACHMENT_ADDED: lambda shown: f"A file was attached: {shown['file_name'] or 'without a name'}.",
    EntryKind.RESOLVED: _describe_resolution,
    EntryKind.ATTRIBUTE_SET: _attribute,
    EntryKind.PARTIES_SET: _always("The related parties were changed."),
    EntryKind.CORRECTION_REVOKED: _correction("revoked"),
    EntryKind.CORRECTION_MADE: _correction("made"),
    EntryKind.JOB_ENDED: _describe_end,
    EntryKind.STATEMENT_READ: _statement,
    EntryKind.JOB_RECEIVED: _describe_receipt,
    EntryKind.CREATED: _always("The customer was created."),
}
