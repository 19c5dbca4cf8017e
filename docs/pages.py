"""Write the pages of the site, for `make docs`: those of docs/ and the README, with links to code as plain paths.

    python docs/pages.py build/pages

On a forge, a link to a file of the repository opens the file. The site has no such files, so the link becomes a path.
"""

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
OUTSIDE_DOCS = {
    ROOT / "README.md": "index.md",
    ROOT / "CONTRIBUTING.md": "contributing.md",
    ROOT / "SECURITY.md": "security.md",
}
NOT_COPIED = {".py", ".pyc", ".map"}


def main(target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    places = {file: Path(name) for file, name in OUTSIDE_DOCS.items()}
    docs = [file for file in (ROOT / "docs").rglob("*") if file.is_file() and file.suffix not in NOT_COPIED]
    places |= {file: file.relative_to(ROOT / "docs") for file in docs}
    for file, place in places.items():
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".md":
            (target / place).write_text(as_page(file, places))
        else:
            shutil.copyfile(file, target / place)


def as_page(file: Path, places: dict[Path, Path]) -> str:
    """Return the page with its links rewritten for its place in the site."""

    def link(match: re.Match[str]) -> str:
        sign, text, address = match.groups()
        path, _, anchor = address.partition("#")
        if "://" in address or not path:
            return match.group()
        named = (file.parent / path).resolve()
        if named not in places:
            inside = named.relative_to(ROOT).as_posix()
            return text if text.strip("`/") in inside else f"{text} (`{inside}`)"
        there = Path("/".join([".."] * (len(places[file].parts) - 1)) or ".") / places[named]
        return f"{sign}[{text}]({there.as_posix()}{'#' * bool(anchor)}{anchor})"

    return LINK.sub(link, file.read_text())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
