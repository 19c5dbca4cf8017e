"""The kit of every page that people read: build a `Page` from parts and `render` it.

A page package says which figures are shown, in which order and in which words: text and numbers only. The kit draws
them: how numbers, days and money are written (`wording`), where the bars of a chart are (`charts`), which parts a
page can have (`parts`), and the one template and style sheet (`document`). It imports no subject but the vocabulary.

A page needs no other file: it runs no script, fetches nothing and contains its style sheet. Its content policy makes
browsers enforce that, and a server can send CONTENT_POLICY as a header, too.
"""

from pipelines.pages.document import CONTENT_POLICY, render
from pipelines.pages.parts import (
    Card,
    Cards,
    Cell,
    Code,
    Column,
    Figure,
    Figures,
    Folded,
    Grid,
    Matrix,
    Note,
    Opening,
    Page,
    Paragraph,
    Part,
    Point,
    Points,
    Section,
    drop_none,
    number_columns,
)

__all__ = [
    "CONTENT_POLICY",
    "Card",
    "Cards",
    "Cell",
    "Code",
    "Column",
    "Figure",
    "Figures",
    "Folded",
    "Grid",
    "Matrix",
    "Note",
    "Opening",
    "Page",
    "Paragraph",
    "Part",
    "Point",
    "Points",
    "Section",
    "drop_none",
    "number_columns",
    "render",
]
