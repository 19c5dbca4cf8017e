"""Rename identifiers and terms as maps say.

    python rename.py MAP...      in the root of a clean checkout

Lines of a map, in their order. GLOBS are separated by commas and relative to the root; `*` is every file, and `!GLOB`
leaves files out:

    name GLOBS old new      the identifier, in code and in the braces of f-strings, not in other strings or comments
    column GLOBS old new    the same, and the string that is nothing else: columns of frames are named in both ways
    part GLOBS old new      like `name`, for words inside identifiers, in any case: book_jobs, BookTable, BOOK_NICE
    all GLOBS old new       the same, and in comments, strings and files of any kind, where capitals alone are left
    word GLOBS old new      wherever it stands as a whole word, in files of any kind
    sub GLOBS => old => new     the text as it stands
    move old new            the file or folder
"""

import fnmatch
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

Change = Callable[[str], str]
BRACES = re.compile(r"\{[^{}]*\}")
HISTORY = ("docs/decisions/0024-moves/", "docs/decisions/0027-renames/", "CHANGELOG.md", "benchmarks/MUTANTS.md")


def main(maps: list[str]) -> None:
    for line in "\n".join(Path(each).read_text() for each in maps).splitlines():
        if line and not line.startswith("#") and not apply(line):
            sys.stderr.write(f"nothing: {line}\n")


def apply(line: str) -> bool:
    """Do what one line of a map says; return whether anything changed."""
    kind, _, rest = line.partition(" ")
    if kind == "move":
        old, new = rest.split()
        Path(new).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "mv", old, new], check=True)
        return True
    globs, old, new = (each.strip() for each in (rest.split("=>") if kind == "sub" else rest.split()))
    rename = parts(old, new)
    change: Change = {
        "name": lambda text: in_code(text, lambda name: new if name == old else name),
        "column": lambda text: re.sub(
            rf"""(["']){re.escape(old)}\1""", rf"\1{new}\1", in_code(text, lambda name: new if name == old else name)
        ),
        "part": lambda text: in_code(text, rename),
        "all": lambda text: re.sub(r"[A-Za-z_]\w*", lambda found: everywhere(found[0], rename), text),
        "word": lambda text: re.sub(rf"\b{re.escape(old)}\b", new, text),
        "sub": lambda text: text.replace(old, new),
    }[kind]
    changed = [
        rewrite(path, in_code_too(change, rename) if kind == "all" and path.suffix == ".py" else change, old)
        for path in files(globs)
        if kind not in {"name", "column", "part"} or path.suffix == ".py"
    ]
    return any(changed)


def files(globs: str) -> Iterator[Path]:
    wanted = [glob for glob in globs.split(",") if not glob.startswith("!")]
    unwanted = [glob[1:] for glob in globs.split(",") if glob.startswith("!")]
    for name in subprocess.check_output(["git", "ls-files"], text=True).splitlines():
        of_these = any(fnmatch.fnmatch(name, glob) for glob in wanted)
        if of_these and not any(fnmatch.fnmatch(name, glob) for glob in unwanted) and not name.startswith(HISTORY):
            yield Path(name)


def rewrite(path: Path, change: Change, old: str) -> bool:
    try:
        before = path.read_bytes().decode()
    except (UnicodeDecodeError, FileNotFoundError):
        return False
    if old.split("_", maxsplit=1)[0].lower() not in before.lower():
        return False
    after = change(before)
    path.write_bytes(after.encode())
    return after != before


def in_code_too(change: Change, rename: Change) -> Change:
    return lambda text: change(in_code(text, rename))


def in_code(text: str, change: Change) -> str:
    """Change names where they are code."""
    edits = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        new = token.string
        if token.type == tokenize.NAME:
            new = change(token.string)
        elif token.type == tokenize.STRING and "f" in token.string.split(token.string[-1])[0].lower():
            new = BRACES.sub(lambda found: re.sub(r"(?<!\w)[A-Za-z_]\w*", lambda m: change(m[0]), found[0]), new)
        if new != token.string:
            edits.append((token.start, token.end, new))
    lines = text.splitlines(keepends=True)
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    for (row, column), (end_row, end_column), new in reversed(edits):
        text = text[: offsets[row - 1] + column] + new + text[offsets[end_row - 1] + end_column :]
    return text


def everywhere(name: str, change: Change) -> str:
    """Prose and data may hold the word in capitals: a bank's text."""
    return name if name.isupper() and "_" not in name else change(name)


def parts(old: str, new: str) -> Change:
    """A change of words inside identifiers: `old` and `new` are snake case."""
    snake = re.compile(rf"(?<![a-z0-9]){re.escape(old)}(?![a-z0-9])")
    camel, new_camel = ("".join(word.capitalize() for word in words.split("_")) for words in (old, new))
    pascal = re.compile(rf"{re.escape(camel)}(?![a-z])")

    def change(name: str) -> str:
        if name.isupper():
            return snake.sub(new, name.lower()).upper()
        return pascal.sub(new_camel, snake.sub(new, name))

    return change


if __name__ == "__main__":
    main(sys.argv[1:])
