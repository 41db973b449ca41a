"""The syntax of integer expressions and predicates: text to a typed tree.

A closed language of integers, names, `+ - * // %`, five functions, comparisons and and/or/not. It
is not Python: there is no attribute, string, call of anything else, or power. `expressions.py`
evaluates the tree.
"""

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

MAX_TEXT_LENGTH = 512
MAX_DEPTH = 24
MAX_CHAIN = 48
"""Operators of one precedence side by side: each is one level of the tree."""
MAX_VALUE = 2**63 - 1

FUNCTIONS = {
    "ceil_div": (2, 2),
    "align_up": (2, 2),
    "min": (2, 8),
    "max": (2, 8),
    "next_pow2": (1, 1),
}
"""Least and most arguments of each function."""

_TOKEN = re.compile(
    r"(?P<malformed>[0-9]+[^\W\d])|(?P<number>[0-9]+)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<op>//|<=|>=|==|!=|[-+*%()<>,])|(?P<other>\S)"
)
_HINTS = {
    "/": "write // for integer division",
    "=": "write == to compare",
    "&": "write and",
    "|": "write or",
    "!": "write not or !=",
    "^": "there is no power or exclusive or",
}
_LEVELS = (("or",), ("and",), ("<", "<=", ">", ">=", "==", "!="), ("+", "-"), ("*", "//", "%"))
"""Operators between operands, from the loosest; `not` binds as comparisons, a sign tightest."""
_COMPARISON = 2


class ExpressionError(ValueError):
    """A text that is not an expression, or one that has no value; says where."""

    def __init__(self, message: str, position: int = 0) -> None:
        """Keep the 0-based `position` in the text beside the message."""
        super().__init__(message)
        self.position = position


@dataclass(frozen=True)
class ExpressionNode:
    """One operation: `kind` is number, name, bool, an operator, a function, or compare."""

    kind: str
    position: int
    children: tuple["ExpressionNode", ...] = ()
    value: int = 0
    name: str = ""
    operators: tuple[str, ...] = ()
    is_predicate: bool = False


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    position: int


def _tokens(text: str) -> Iterator[_Token]:
    if len(text) > MAX_TEXT_LENGTH:
        raise ExpressionError(f"{len(text)} characters; at most {MAX_TEXT_LENGTH} are allowed")
    for match in _TOKEN.finditer(text):
        kind, position = str(match.lastgroup), match.start()
        if kind == "malformed":
            raise ExpressionError("a number is decimal digits only", position)
        if kind == "other":
            hint = _HINTS.get(match[0], "allowed are integers, names, + - * // % and functions")
            raise ExpressionError(f"unexpected {match[0]!r}: {hint}", position)
        yield _Token(kind, match[0], position)
    yield _Token("end", "the end", len(text.rstrip()))


class _Parser:
    """Recursive descent over one text; `depth` bounds the recursion."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._index = 0
        self._depth = 0

    def whole(self) -> ExpressionNode:
        node = self._level(0)
        token = self._peek()
        if token.kind != "end":
            raise ExpressionError(f"unexpected {token.text!r} after the expression", token.position)
        return node

    def _peek(self) -> _Token:
        return self._tokens[self._index]

    def _take(self, *texts: str) -> _Token | None:
        token = self._peek()
        if token.kind != "end" and token.text in texts:
            self._index += 1
            return token
        return None

    @contextmanager
    def _within(self, token: _Token) -> Generator[None]:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ExpressionError(f"nested deeper than {MAX_DEPTH} levels", token.position)
        yield
        self._depth -= 1

    def _level(self, level: int) -> ExpressionNode:
        """Read operands and what joins them at `level` of `_LEVELS` or tighter."""
        if level == len(_LEVELS):
            return self._operand()
        if level == _COMPARISON and (token := self._take("not")):
            with self._within(token):
                operand = _require(self._level(level), predicate=True)
            return ExpressionNode("not", token.position, (operand,), is_predicate=True)
        parts = [self._level(level + 1)]
        signs: list[_Token] = []
        while token := self._take(*_LEVELS[level]):
            signs.append(token)
            if level > _COMPARISON and len(signs) > MAX_CHAIN:
                raise ExpressionError(f"more than {MAX_CHAIN} operators in a row", token.position)
            parts.append(self._level(level + 1))
        return _joined(level, parts, signs) if signs else parts[0]

    def _operand(self) -> ExpressionNode:
        token = self._peek()
        self._index += 1
        if token.kind == "op" and token.text in ("-", "+"):
            with self._within(token):
                operand = _require(self._operand(), predicate=False)
            return ExpressionNode(
                token.text, token.position, (ExpressionNode("number", token.position), operand)
            )
        if token.kind == "number":
            return _number(token)
        if token.kind == "name":
            return self._named(token)
        if token.kind == "op" and token.text == "(":
            with self._within(token):
                node = self._level(0)
                self._close(token)
            return node
        raise ExpressionError(f"expected a number or a name, got {token.text}", token.position)

    def _close(self, opening: _Token) -> None:
        if self._take(")") is None:
            raise ExpressionError(f"the {opening.text!r} is not closed", opening.position)

    def _named(self, token: _Token) -> ExpressionNode:
        if token.text in ("true", "false"):
            return ExpressionNode(
                "bool", token.position, value=int(token.text == "true"), is_predicate=True
            )
        if token.text in ("and", "or", "not"):
            raise ExpressionError(f"{token.text!r} has nothing before it", token.position)
        opening = self._take("(")
        if opening is not None:
            return self._call(token, opening)
        if token.text in FUNCTIONS:
            raise ExpressionError(f"{token.text} needs its arguments", token.position)
        return ExpressionNode("name", token.position, name=token.text)

    def _call(self, token: _Token, opening: _Token) -> ExpressionNode:
        if token.text not in FUNCTIONS:
            reason = f"no function is called {token.text!r}; there are {', '.join(FUNCTIONS)}"
            raise ExpressionError(reason, token.position)
        with self._within(token):
            arguments = [_require(self._level(0), predicate=False)]
            while self._take(","):
                arguments.append(_require(self._level(0), predicate=False))
            self._close(opening)
        least, most = FUNCTIONS[token.text]
        if not least <= len(arguments) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            reason = f"{token.text} takes {wanted} arguments, not {len(arguments)}"
            raise ExpressionError(reason, token.position)
        return ExpressionNode(token.text, token.position, tuple(arguments))


def _joined(level: int, parts: list[ExpressionNode], signs: list[_Token]) -> ExpressionNode:
    for part in parts:
        _require(part, predicate=level < _COMPARISON)
    last = signs[-1]
    if level < _COMPARISON:
        return ExpressionNode(last.text, last.position, tuple(parts), is_predicate=True)
    if level == _COMPARISON:
        operators = tuple(sign.text for sign in signs)
        node = ExpressionNode(
            "compare", last.position, tuple(parts), operators=operators, is_predicate=True
        )
        return node
    left = parts[0]
    for sign, right in zip(signs, parts[1:], strict=True):
        left = ExpressionNode(sign.text, sign.position, (left, right))
    return left


def _number(token: _Token) -> ExpressionNode:
    if len(token.text) > 19 or int(token.text) > MAX_VALUE:
        raise ExpressionError("the number exceeds 2^63 - 1", token.position)
    return ExpressionNode("number", token.position, value=int(token.text))


def _require(node: ExpressionNode, *, predicate: bool) -> ExpressionNode:
    if node.is_predicate is not predicate:
        wanted, got = ("condition", "number") if predicate else ("number", "condition")
        raise ExpressionError(f"expected a {wanted}, got a {got}", node.position)
    return node


@lru_cache(maxsize=4096)
def parse(text: str) -> ExpressionNode:
    """Return the tree of an expression or predicate.

    Raises:
        ExpressionError: The text is in neither form, too long or nested too deeply.
    """
    return _Parser(text).whole()
