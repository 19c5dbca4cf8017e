"""Write labels and values above the rows and below them."""

from collections.abc import Mapping

from pipelines.synthetic.pdf.layout import Block
from pipelines.synthetic.pdf.paper import Paper

Details = Mapping[str, object]  # of an account, by their names in a layout's texts


def write_block(paper: Paper, block: Block, described: Details) -> None:
    """Write a block where it says, with the account's details filled in."""
    for n, line in enumerate(block.lines):
        label, value = ("", line) if isinstance(line, str) else line
        texts = (label.format_map(described), value.format_map(described))
        shown = (texts[0].upper(), texts[1].upper()) if block.capitals else texts
        if block.across:
            _across(paper, block, n, *shown)
        else:
            _pair(paper, block, block.y + n * block.size * 1.45, *shown)


def _across(paper: Paper, block: Block, n: int, label: str, value: str) -> None:
    x = block.x + n * block.value_at
    paper.write(x, block.y, label, size=block.size, bold=True)
    paper.write(x, block.y + block.size * 1.5, value, size=block.size)


def _pair(paper: Paper, block: Block, y: float, label: str, value: str) -> None:
    if block.value_at and label:
        paper.write(block.x, y, label, size=block.size, bold=block.bold)
        paper.write(block.value_at, y, value, size=block.size, flush_right=True)
    else:
        paper.write(block.x, y, f"{label} {value}".strip(), size=block.size, bold=block.bold)
