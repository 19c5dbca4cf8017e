"""Measure the accuracy of reading statements: every layout (two were not used in development), forgeries,
hard pages.
"""

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.statement_truth import Reading, Total, reading
from benchmarks.table import Row
from pipelines.intake.pdf.extraction import extract
from pipelines.synthetic.pdf import EVERY_LAYOUT, FORGERIES, HELD_OUT, LAYOUTS, STRESSES, forgeries_of, statement_pdf

TITLE = "How accurately bank statements are read"
SEEDS, FORGED_SEEDS, STRESSED_SEEDS = (range(81_000, 81_000 + count) for count in (40, 10, 6))
ABOUT = (
    f"Generated PDF statements in {len(EVERY_LAYOUT)} layouts, {len(SEEDS)} of each. {len(HELD_OUT)} of the "
    "layouts were not looked at while extraction was developed, and have figures of their own. A row is right if its "
    "date and amount are right, and exact if its printed balance is right, too. A forgery removes one row or changes "
    "one digit. In a listing without opening and closing balance it never removes the first or last row, because "
    "nobody could notice that. Such a listing counts as reconciled if all rows but the oldest are proved, though its "
    "verdict is `partial`. A file is flagged if its verdict proves less, or if it has a signal above the level of "
    "information. A file is wrongly called reconciled if it is forged, or if a row is extra, missing or wrong."
)


def measure() -> Sequence[Row]:
    usual = Total([_read_made_statement(layout, seed) for layout in EVERY_LAYOUT for seed in SEEDS])
    forged = {forgery: Total(list(_read_forged(forgery))) for forgery in FORGERIES}
    stressed = {stress: Total(list(_read_stressed(stress))) for stress in STRESSES}
    return [
        *_rows_of_all_layouts(usual),
        *_rows_of_each_layout(usual),
        *_rows_of_forgeries(forged),
        *_rows_of_stress(stressed),
        Row("wrongly called reconciled, in all files", f"{_count_wrongly_proved(usual, forged, stressed)}", "0"),
    ]


def _read_made_statement(
    layout: str, seed: int, *, pages: int | None = None, stress: str | None = None, forgery: str | None = None
) -> Reading:
    made = statement_pdf(layout, seed, pages=pages, stress=stress, forgery=forgery)
    return reading(made, extract(made.content), forged=forgery is not None)


def _read_forged(forgery: str) -> Iterator[Reading]:
    for name, layout in EVERY_LAYOUT.items():
        if forgery in forgeries_of(layout):
            yield from (_read_made_statement(name, seed, forgery=forgery) for seed in FORGED_SEEDS)


def _read_stressed(stress: str) -> Iterator[Reading]:
    return (
        _read_made_statement(layout, seed, pages=3, stress=stress) for layout in EVERY_LAYOUT for seed in STRESSED_SEEDS
    )


def _rows_of_all_layouts(usual: Total) -> list[Row]:
    seen = Total([each for each in usual.readings if each.layout in LAYOUTS])
    unseen = Total([each for each in usual.readings if each.layout in HELD_OUT])
    return [
        row
        for whose, total in ((f"{len(LAYOUTS)} layouts", seen), (f"{len(HELD_OUT)} held-out layouts", unseen))
        for row in _rows(whose, total)
    ]


def _rows(whose: str, total: Total) -> list[Row]:
    return [
        Row(f"{whose}: rows, precision", _share_text(total.share("right", "read")), "≥ 0.995"),
        Row(f"{whose}: rows, recall of {total.sum('true'):,}", _share_text(total.share("right", "true")), "≥ 0.995"),
        Row(f"{whose}: date, amount and balance exact", _share_text(total.share("exact", "true")), "≥ 0.99"),
        Row(
            f"{whose}: accounts reconciled, of {total.sum('accounts')}",
            _percent(total.share("reconciled", "accounts")),
            "≥ 95 %",
        ),
        Row(f"{whose}: reconciled but for dates in doubt", _percent(total.share("doubtful", "accounts"))),
        Row(
            f"{whose}: bank, BSB, number, period, opening and closing right",
            _percent(total.share("details_right", "details")),
        ),
        Row(f"{whose}: files flagged, all of them honest", _percent(_share_flagged(total))),
        Row(f"{whose}: descriptions right, ignoring spaces", _share_text(total.share("worded", "true"))),
        Row(f"{whose}: rows placed on their page", _share_text(total.share("placed", "true"))),
    ]


def _rows_of_each_layout(usual: Total) -> list[Row]:
    return [
        Row(
            f"`{name}`{', held out' if name in HELD_OUT else ''}: precision, recall, exact, reconciled, details",
            _summary(usual.select_layout(name)),
        )
        for name in EVERY_LAYOUT
    ]


def _summary(total: Total) -> str:
    shares = [total.share("right", "read"), total.share("right", "true"), total.share("exact", "true")]
    rest = [total.share("reconciled", "accounts"), total.share("details_right", "details")]
    return ", ".join([*map(_share_text, shares), *map(_percent, rest)])


def _rows_of_forgeries(forged: Mapping[str, Total]) -> list[Row]:
    return [
        Row(f"forged, {name}: flagged, of {len(total.readings)} files", _percent(_share_flagged(total)), "≥ 99 %")
        for name, total in forged.items()
    ]


def _share_flagged(total: Total) -> float:
    return sum(each.flagged for each in total.readings) / len(total.readings)


def _rows_of_stress(stressed: Mapping[str, Total]) -> list[Row]:
    return [
        Row(f"{name}: precision, recall, exact, reconciled, details", _summary(total))
        for name, total in stressed.items()
    ]


def _count_wrongly_proved(usual: Total, forged: Mapping[str, Total], stressed: Mapping[str, Total]) -> int:
    return sum(total.sum("wrongly_proved") for total in (usual, *forged.values(), *stressed.values()))


def _share_text(share: float) -> str:
    return f"{share:.4f}"


def _percent(share: float) -> str:
    return f"{share:.1%}".replace("%", " %")
