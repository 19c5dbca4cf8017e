"""A strict parser of HTML documents: anything that a browser would have to guess is a fault."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"meta", "br", "hr", "input", "link", "img"})


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    parent: "Element | None" = None
    children: list["Element | str"] = field(default_factory=list)

    @property
    def text(self) -> str:
        parts = (each if isinstance(each, str) else each.text for each in self.children)
        return "".join(parts)

    def all(self, *tags: str) -> Iterator["Element"]:
        """Yield the elements below with one of these tags, or all, in document order."""
        for child in self.children:
            if isinstance(child, Element):
                if not tags or child.tag in tags:
                    yield child
                yield from child.all(*tags)

    def one(self, tag: str) -> "Element":
        [found] = self.all(tag)
        return found


class _Strict(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("document", {})
        self.open = self.root

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._add(tag, attrs)
        if tag not in VOID:
            self.open = next(each for each in reversed(self.open.children) if isinstance(each, Element))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._add(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.tag == tag, f"</{tag}> closes <{self.open.tag}>"
        assert self.open.parent is not None
        self.open = self.open.parent

    def handle_data(self, data: str) -> None:
        self.open.children.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment in the page: {data}")

    def _add(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice"
        self.open.children.append(Element(tag, {name: value or "" for name, value in attrs}, self.open))


def parse_html(html: str) -> Element:
    """Parse the document into a tree; raise if an element is not closed where it should be."""
    parser = _Strict()
    parser.feed(html)
    parser.close()
    assert parser.open is parser.root, f"<{parser.open.tag}> is never closed"
    return parser.root


def table(document: Element, caption: str) -> list[list[str]]:
    """Return the first table with this caption: its rows as texts, the heading row first."""
    for each in document.all("table"):
        if each.one("caption").text.strip() == caption:
            return [[cell.text for cell in row.all("th", "td")] for row in each.all("tr")]
    raise AssertionError(f"there is no table {caption}")
