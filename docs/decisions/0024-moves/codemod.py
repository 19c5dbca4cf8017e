"""Move modules as a map says, and rewrite every import, dotted name and path that names one.

    python codemod.py MAP...      in the root of a clean checkout

A line of a map is `old new`, both dotted. Of two entries for one module the longest wins; a package takes its files
along. `from old.package import module` becomes `from new.package import module`, with `as` where the last name changes.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

TOPS = ("api", "assets", "storage", "pipelines", "isolation", "tests", "benchmarks")


def read_map(files):
    moves = {}
    for file in files:
        for line in Path(file).read_text().splitlines():
            words = line.split("#")[0].split()
            if len(words) == 2:
                moves[words[0]] = words[1]
    return moves


def modules():
    found = {}
    for name in subprocess.check_output(["git", "ls-files", "*.py"], text=True).split():
        parts = Path(name).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
        if parts and parts[0] in TOPS:
            found[".".join(parts)] = name
    return found


class Move:
    def __init__(self, moves, known):
        self.moves, self.known = moves, known

    def new(self, dotted):
        head, tail = dotted, ""
        while head:
            if head in self.moves:
                return self.moves[head] + tail
            head, _, last = head.rpartition(".")
            tail = f".{last}{tail}"
        return dotted

    def source(self, text):
        tree = ast.parse(text)
        lines = text.splitlines(keepends=True)
        edits = []
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.ImportFrom)
                and node.module
                and node.level == 0
                and node.module.split(".")[0] in TOPS
            ):
                edits.append((node.lineno, node.end_lineno, self.from_import(node)))
            elif isinstance(node, ast.Import) and any(self.new(a.name) != a.name for a in node.names):
                indent = " " * node.col_offset
                names = ", ".join(self.new(a.name) + (f" as {a.asname}" if a.asname else "") for a in node.names)
                edits.append((node.lineno, node.end_lineno, [f"import {names}"]))
        for first, last, new in sorted(edits, reverse=True):
            old = lines[first - 1 : last]
            indent = re.match(r"\s*", old[0]).group()
            comment = re.search(r"  # noqa[^\n]*", "".join(old))
            suffix = comment.group() if comment else ""
            lines[first - 1 : last] = [f"{indent}{line}{suffix}\n" for line in new]
        return "".join(lines)

    def from_import(self, node):
        out, plain = [], []
        for alias in node.names:
            full = f"{node.module}.{alias.name}"
            if full in self.known:
                package, _, base = self.new(full).rpartition(".")
                name = alias.asname or alias.name
                out.append(f"from {package} import {base}" + (f" as {name}" if name != base else ""))
            else:
                plain.append(alias.name + (f" as {alias.asname}" if alias.asname else ""))
        if plain:
            joined = ", ".join(plain)
            out.append(
                f"from {self.new(node.module)} import {joined}"
                if len(joined) < 60
                else f"from {self.new(node.module)} import ({joined})"
            )
        return out

    def text(self, text, python):
        """Dotted names and paths in strings, comments and documents; in Python not those of imports, which are done."""

        def dotted(match):
            return self.new(match.group()) if self.named(match.group()) else match.group()

        def path(match):
            name = match.group().rstrip("/")
            stem = re.sub(r"\.py$", "", name).replace("/", ".")
            slash = "/" if match.group().endswith("/") else ""
            if name.endswith(".py"):
                return self.new(stem).replace(".", "/") + ".py" if stem in self.known else match.group()
            head, tail = name, ""
            while head:
                if head.replace("/", ".") in self.moves:
                    return self.moves[head.replace("/", ".")].replace(".", "/") + tail + slash
                head, _, last = head.rpartition("/")
                tail = f"/{last}{tail}"
            return match.group()

        tops = "|".join(TOPS)
        done = []
        for line in text.splitlines(keepends=True):
            if python and re.match(r"\s*(from|import) (" + tops + r")\b", line):
                done.append(line)
                continue
            paths_moved = re.sub(rf"(?<![\w./-])(?:{tops})(?:/[\w.*-]+)+/?", path, line)
            done.append(re.sub(rf"(?<![\w./-])(?:{tops})(?:\.\w+)+", dotted, paths_moved))
        return "".join(done)

    def named(self, dotted):
        head = dotted
        while head:
            if head in self.moves and (head in self.known):
                return True
            head = head.rpartition(".")[0]
        return False


def tracked():
    return [Path(name) for name in subprocess.check_output(["git", "ls-files"], text=True).split()]


def rewrite_texts(move):
    for file in tracked():
        is_text = file.suffix in {".py", ".md", ".toml", ".yaml", ".yml", ".mako"} or file.name == "Makefile"
        if not is_text or file.name == "CHANGELOG.md":
            continue
        old = file.read_text()
        new = move.text(move.source(old) if file.suffix == ".py" else old, file.suffix == ".py")
        if new != old:
            file.write_text(new)


def target_of(move, file):
    if file.parts[0] not in TOPS or len(file.parts) == 1:
        return file
    if file.suffix == ".py" and file.name != "__init__.py":
        return Path(*move.new(".".join(file.with_suffix("").parts)).split(".")).with_suffix(".py")
    return Path(*move.new(".".join(file.parent.parts)).split(".")) / file.name


def move_files(move):
    """In two steps, as one file may take the place of another that moves."""
    renamed = [
        (file, target, file.with_name(f"{file.name}.moving"))
        for file in tracked()
        if (target := target_of(move, file)) != file
    ]
    for file, _, moving in renamed:
        subprocess.check_call(["git", "mv", str(file), str(moving)])
    for _, target, moving in renamed:
        assert not target.exists(), target
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.check_call(["git", "mv", str(moving), str(target)])
    for folder in {
        folder for _, target, _ in renamed if target.suffix == ".py" for folder in list(target.parents)[:-1]
    }:
        (folder / "__init__.py").touch()


def main():
    move = Move(read_map(sys.argv[1:]), modules())
    rewrite_texts(move)
    move_files(move)


main()
