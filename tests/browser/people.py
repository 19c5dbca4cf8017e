"""People who use the console with a mouse, or with a keyboard alone: the steps of a flow are the same for both."""

from abc import ABC, abstractmethod
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

MAX_STOPS = 500  # of Tab on a page: what isn't reached by then is out of reach
MAX_OPTIONS = 200  # of a choice
FOCUS = """() => {
    const each = document.activeElement;
    if (!each || each === document.body) return null;
    const style = getComputedStyle(each), box = each.getBoundingClientRect();
    const isInView = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
    const hasRing = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
    return {isShown: isInView && hasRing, element: each.outerHTML.slice(0, 160)};
}"""


class Person(ABC):
    """Somebody who looks at a page."""

    def __init__(self, page: Page) -> None:
        self.page = page

    @abstractmethod
    def press(self, target: Locator, key: str = "Enter") -> None:
        """Press something that stays on the page: with this key, or with the mouse."""

    @abstractmethod
    def follow(self, target: Locator) -> None:
        """Press a link, or a button that sends a form, and wait for the page that it leads to."""

    @abstractmethod
    def type(self, target: Locator, text: str) -> None:
        """Replace the text of a field."""

    @abstractmethod
    def choose(self, target: Locator, option: str) -> None:
        """Choose an option by its words."""

    def follow_link(self, name: str) -> None:
        self.follow(self.page.get_by_role("link", name=name, exact=True).first)

    def follow_button(self, name: str) -> None:
        self.follow(self.page.get_by_role("button", name=name, exact=True).first)

    def expect_status(self, words: str) -> None:
        """Check what the page says about the last action."""
        expect(self.page.get_by_role("status").first).to_contain_text(words)


class Mouse(Person):
    """A person who points and clicks."""

    def press(self, target: Locator, key: str = "Enter") -> None:
        target.click()

    def follow(self, target: Locator) -> None:
        with self.page.expect_navigation():
            target.click()

    def type(self, target: Locator, text: str) -> None:
        target.fill(text)

    def choose(self, target: Locator, option: str) -> None:
        target.select_option(label=option)


class Keyboard(Person):
    """A person who only has a keyboard."""

    def reach(self, target: Locator) -> None:
        """Press Tab until the target has the focus. Each stop on the way must be visible, and have a ring around it."""
        target.wait_for()
        for _ in range(MAX_STOPS):
            focus = self.page.evaluate(FOCUS)
            assert focus is None or focus["isShown"], f"the focus can't be seen: {focus['element']}"
            if target.evaluate("each => each === document.activeElement"):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"Tab doesn't reach {target}")

    def press(self, target: Locator, key: str = "Enter") -> None:
        self.reach(target)
        self.page.keyboard.press(key)

    def follow(self, target: Locator) -> None:
        self.reach(target)
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")

    def choose_file(self, target: Locator, file: Path) -> None:
        """Open the browser's window for files, and choose one in it."""
        self.reach(target)
        with self.page.expect_file_chooser() as opened:
            self.page.evaluate("document.title")  # once it has answered, the browser's window is ours to fill in
            self.page.keyboard.press("Space")
        opened.value.set_files(file)

    def type(self, target: Locator, text: str) -> None:
        self.press(target, "Control+A")
        self.page.keyboard.insert_text(text)

    def choose(self, target: Locator, option: str) -> None:
        self.press(target, "Home")
        for _ in range(MAX_OPTIONS):
            if target.evaluate("each => each.selectedOptions[0].label") == option:
                return
            self.page.keyboard.press("ArrowDown")
        raise AssertionError(f"{target} has no option {option}")
