"""Differences between files of one layout: harmless ones, and those that make a file hard to read."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from types import MappingProxyType

from pipelines.intake.pdf.page.result import Kind
from pipelines.synthetic.pdf.layout import PdfLayout
from pipelines.synthetic.pdf.paper import PrintVariant


def draw_print_variant(layout: PdfLayout, rng: Random) -> PrintVariant:
    """Draw a file's variant. Most are upright and plain; some are turned, hold their page by column or split words."""
    return PrintVariant(
        font=rng.choice(layout.fonts),
        rotation=rng.choice((0, 0, 0, 0, 0, 0, 0, 90, 180, 270)),
        spaces=rng.choice(("blank", "blank", "blank", "no_break", "narrow")),
        split_words=rng.choice((0.0, 0.0, 0.0, 0.3)),
        by_column=rng.random() < 0.2,
        bold_twice=rng.random() < 0.15,
        watermark=rng.choice(("", "", "", "", "", "", "", "COPY")),
        shift=rng.uniform(-6, 6),
        centred=rng.random() < 0.25,
        adverts=rng.choice((0.0, 0.0, 0.02, 0.04)),
        fee_table=rng.random() < 0.3 and layout.kind is Kind.STATEMENT,
        small_print=rng.random() < 0.2 and layout.kind is Kind.STATEMENT,
        other_line=rng.random() < 0.15,
    )


STRESSES: Mapping[str, Callable[[PrintVariant, Random], PrintVariant]] = MappingProxyType(
    {
        "headings on the first page only": lambda variant, _: replace(variant, headings_on_first_page=True),
        "half a degree to a degree askew": lambda variant, rng: replace(
            variant, skew=rng.choice((-1, 1)) * rng.uniform(0.5, 1), rotation=0
        ),
        "half the balances removed": lambda variant, _: replace(variant, balances_shown=0.5),
        "unknown headings": lambda variant, _: replace(variant, strange_headings=True),
        "amounts in two pieces": lambda variant, _: replace(variant, split_figures=True, spaces="blank"),
        "rows that go on on the next page": lambda variant, _: replace(variant, rows_broken=True),
        "dates and figures halfway down their rows": lambda variant, _: replace(variant, halfway=True),
        "figures flush left": lambda variant, _: replace(variant, flush_left=True),
        "long amounts on two lines": lambda variant, _: replace(variant, wrapped_figures=True),
    }
)
