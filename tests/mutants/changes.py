"""Small faults planted into source text, one at a time."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Change:
    """Replaces the source between two offsets of its bytes."""

    line: int
    start: int
    stop: int
    text: str
    what: str

    def applied(self, source: str) -> str:
        raw = source.encode()
        return (raw[: self.start] + self.text.encode() + raw[self.stop :]).decode()


def changes(source: str) -> Iterator[Change]:
    """Every fault we know how to plant, in the order of the lines."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in ast.walk(ast.parse(source)):
        for place, text, what in _faults(node, source):
            begin = starts[place.lineno - 1] + place.col_offset
            end = starts[(place.end_lineno or 1) - 1] + (place.end_col_offset or 0)
            yield Change(place.lineno, begin, end, text, what)


def _faults(node: ast.AST, source: str) -> Iterator[tuple[ast.expr | ast.stmt, str, str]]:
    def text(part: ast.AST) -> str:
        return ast.get_source_segment(source, part) or ""

    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
            new = f"({text(left)} {_COMPARISONS[type(op)]} {text(right)})"
            yield node, new, f"{text(node)} became {new}"
        case ast.BoolOp(op=op, values=values):
            word = " or " if isinstance(op, ast.And) else " and "
            new = "(" + word.join(text(value) for value in values) + ")"
            yield node, new, f"{' '.join(text(node).split())} with{word}instead"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, f"({text(operand)})", f"{text(node)} without not"
        case ast.Constant(value=bool(value)):
            yield node, str(not value), f"{value} became {not value}"
        case ast.Constant(value=int(value)):
            yield node, str(value + 1), f"{value} became {value + 1}"
        case ast.If(test=test):
            yield test, "False", f"never: if {text(test)}"
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield node, "pass", f"left out: {text(node).splitlines()[0]}"
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield value, "None", f"return None instead of {text(value).splitlines()[0]}"
