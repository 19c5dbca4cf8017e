"""What a browser sends for a form that nobody touched: with other line breaks, and without those of one-line fields."""

from collections.abc import Iterator

from tests.pipelines.pages.documents import Element, parse_html

ONE_LINE = ("text", "email", "url", "search", "tel", "password")


def untouched(page: str, action: str, button: str = "") -> list[tuple[str, str]]:
    """Return the fields of the page's only form that is posted to the address, in the order in which they are sent.

    Args:
        button: the value of the button that sends it, if it has one.
    """
    document = parse_html(page.replace("\r\n", "\n").replace("\r", "\n"))  # as browsers read it
    [form] = [
        each
        for each in document.all("form")
        if (each.attributes.get("method"), each.attributes.get("action")) == ("post", action)
    ]
    return [
        (name, value.replace("\n", "\r\n"))
        for each in form.all("input", "select", "textarea", "button")
        if (name := each.attributes.get("name"))
        for value in _values(each, button)
    ]


def _values(field: Element, button: str) -> Iterator[str]:
    kind, value = field.attributes.get("type", "text"), field.attributes.get("value", "")
    if field.tag == "select":
        options = [*field.all("option")]
        chosen = [each for each in options if "selected" in each.attributes] or options[:1]
        yield from (each.attributes["value"] for each in chosen)
    elif field.tag == "textarea":
        yield field.text.removeprefix("\n")
    elif field.tag == "button":
        yield from [value] if value and value == button else []
    elif kind in ("checkbox", "radio"):
        yield from [value] if "checked" in field.attributes else []
    else:
        yield value.replace("\n", "") if kind in ONE_LINE else value
