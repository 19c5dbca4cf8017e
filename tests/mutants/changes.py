"""Find small changes of a module that its tests should notice."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import accumulate, pairwise
from typing import Final

OPERATORS: Final[Mapping[type[ast.AST], tuple[str, str]]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
METHODS: Final[Mapping[str, str]] = {
    "is_null": "is_not_null",
    "is_not_null": "is_null",
    "any_horizontal": "all_horizontal",
    "all_horizontal": "any_horizontal",
    "sum": "max",
    "min": "max",
    "max": "min",
}


@dataclass(frozen=True)
class Mutant:
    """One change of a statement in a function. It is the same in two commits if this statement is the same."""

    path: str
    function: str
    statement: str
    offset: int  # in bytes, from the start of the statement
    old: str
    new: str
    start: int = field(compare=False)  # in bytes, from the start of the file
    lines: Sequence[int] = field(compare=False)  # of the changed expression and of its statement

    @property
    def key(self) -> str:
        same = (self.path, self.function, self.statement, self.offset, self.old, self.new)
        return sha256(repr(same).encode()).hexdigest()[:16]

    def apply(self, source: str) -> str:
        content = source.encode()
        return (content[: self.start] + self.new.encode() + content[self.start + len(self.old.encode()) :]).decode()

    def draw(self, source: str) -> tuple[str, str]:
        """Return the changed line before and after; of a change over several lines only the first."""
        line, content = source.encode().rfind(b"\n", 0, self.start) + 1, source.encode()
        before = content[line : content.find(b"\n", self.start)].decode().strip()
        changed = self.apply(source).encode()[line:].partition(b"\n")[0].decode().strip()
        return before, changed

    def is_valid(self, source: str) -> bool:
        """Return whether the changed module can be compiled and is another program."""
        try:
            return ast.dump(ast.parse(self.apply(source))) != ast.dump(ast.parse(source))
        except SyntaxError:
            return False


def find_mutants(path: str, source: str) -> dict[str, Mutant]:
    """Return the mutants of all functions of a module by key. Of equal statements in one function only the first."""
    found: dict[str, Mutant] = {}
    text = _Text(source)
    for function, statement, node in _nodes_of_functions(ast.parse(source), (), None):
        first, last = text.span(statement)
        for start, end, new in _changes(node, text):
            old = text.content[start:end].decode()
            whole = text.content[first:last].decode()
            lines = (node.lineno, statement.lineno)
            mutant = Mutant(path, function, whole, start - first, old, new, start, lines)
            found.setdefault(mutant.key, mutant)
    return found


class _Text:
    """A source as bytes, which is what the columns of `ast` count."""

    def __init__(self, source: str) -> None:
        self.content = source.encode()
        self._lines = [0, *accumulate(len(line) for line in self.content.splitlines(keepends=True))]

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._lines[node.lineno - 1] + node.col_offset, self._lines[node.end_lineno - 1] + node.end_col_offset


def _nodes_of_functions(
    node: ast.AST, names: tuple[str, ...], statement: ast.stmt | None
) -> Iterator[tuple[str, ast.stmt, ast.expr | ast.stmt]]:
    """Yield what stands in bodies of functions, each with the function's name and the innermost statement around it.

    Decorators, defaults and annotations are left out: they run at import, where no test is to be named. So is the
    inside of f-strings, which has no usable position before Python 3.12.
    """
    if isinstance(node, ast.stmt | ast.expr) and names and statement is not None:
        yield ".".join(names), statement, node
    children: Iterator[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        names, children = (*names, node.name), iter(node.body)
    elif isinstance(node, ast.AnnAssign):
        children = iter([node.value] if node.value is not None else [])
    elif isinstance(node, ast.JoinedStr):
        return
    in_class = isinstance(node, ast.ClassDef | ast.Module)
    for child in children:
        inner = child if isinstance(child, ast.stmt) else statement
        yield from _nodes_of_functions(child, names, None if in_class else inner)


def _changes(node: ast.AST, text: _Text) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and new text of each change of this very node."""

    def swap(left: ast.expr, right: ast.expr, operator: ast.AST) -> Iterator[tuple[int, int, str]]:
        old, new = OPERATORS.get(type(operator), ("", ""))
        start = text.content.find(old.encode(), text.span(left)[1], text.span(right)[0])
        if old and start >= 0:
            yield start, start + len(old), new

    match node:
        case ast.Compare(left=first, ops=operators, comparators=others):
            for (left, right), operator in zip(pairwise([first, *others]), operators, strict=True):
                yield from swap(left, right, operator)
        case ast.BoolOp(op=operator, values=values):
            for left, right in pairwise(values):
                yield from swap(left, right, operator)
        case ast.BinOp(left=left, op=operator, right=right):
            yield from swap(left, right, operator)
        case ast.UnaryOp(op=ast.Not()):
            start, _ = text.span(node)
            yield start, start + len("not "), ""
        case ast.Constant(value=bool() | int() as value):
            yield (*text.span(node), str(not value) if isinstance(value, bool) else str(value + 1))
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield (*text.span(value), "None")
        case ast.Call(func=ast.Attribute(attr=name) as method) if name in METHODS:
            end = text.span(method)[1]
            yield end - len(name), end, METHODS[name]
        case _:
            pass
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        start, end = text.span(node.test)
        yield start, end, f"not ({text.content[start:end].decode()})"
