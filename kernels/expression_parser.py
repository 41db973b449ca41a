"""The syntax of integer expressions and predicates: text to a typed tree.

A closed language of integers, names, `+ - * // %`, five functions, comparisons and and/or/not. It
is not Python: there is no attribute, string, call of anything else, or power. `expressions.py`
evaluates the tree.
"""

import re
from collections.abc import Callable
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
    r"\s*(?:(?P<number>[0-9]+)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<op>//|<=|>=|==|!=|[-+*%()<>,]))"
)
_HINTS = {
    "/": "write // for integer division",
    "=": "write == to compare",
    "&": "write and",
    "|": "write or",
    "!": "write not or !=",
    "^": "there is no power or exclusive or",
}
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
_WORDS = frozenset({"and", "or", "not", "true", "false"})


class ExpressionError(ValueError):
    """A text that is not an expression, or one that has no value; says where."""

    def __init__(self, message: str, position: int = 0) -> None:
        """Keep the 0-based `position` in the text beside the message."""
        super().__init__(message)
        self.position = position


@dataclass(frozen=True)
class Node:
    """One operation: `kind` is number, name, bool, an operator, a function, or compare."""

    kind: str
    position: int
    children: tuple["Node", ...] = ()
    value: int = 0
    name: str = ""
    operators: tuple[str, ...] = ()
    is_predicate: bool = False


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    position: int


def _tokens(text: str) -> list[_Token]:
    if len(text) > MAX_TEXT_LENGTH:
        raise ExpressionError(f"{len(text)} characters; at most {MAX_TEXT_LENGTH} are allowed")
    tokens: list[_Token] = []
    position = 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            position += len(text[position:]) - len(text[position:].lstrip())
            hint = _HINTS.get(
                text[position], "allowed are integers, names, + - * // % and functions"
            )
            raise ExpressionError(f"unexpected {text[position]!r}: {hint}", position)
        kind = match.lastgroup
        tokens.append(_Token(kind, match[kind], match.start(kind)))
        position = match.end()
        if (
            kind == "number"
            and position < end
            and (text[position].isalpha() or text[position] == "_")
        ):
            raise ExpressionError("a number is decimal digits only", match.start(kind))
    return [*tokens, _Token("end", "the end", end)]


class _Parser:
    """Recursive descent over one text; `depth` bounds the recursion."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._index = 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._disjunction()
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

    def _enter(self, position: int) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ExpressionError(f"nested deeper than {MAX_DEPTH} levels", position)

    def _disjunction(self) -> Node:
        return self._joined("or")

    def _joined(self, word: str) -> Node:
        inner = self._negation if word == "and" else lambda: self._joined("and")
        parts = [inner()]
        position = parts[0].position
        while token := self._take(word):
            position = token.position
            parts.append(inner())
        if len(parts) == 1:
            return parts[0]
        for part in parts:
            _require(part, predicate=True)
        return Node(word, position, tuple(parts), is_predicate=True)

    def _negation(self) -> Node:
        token = self._take("not")
        if token is None:
            return self._comparison()
        self._enter(token.position)
        operand = _require(self._negation(), predicate=True)
        self._depth -= 1
        return Node("not", token.position, (operand,), is_predicate=True)

    def _comparison(self) -> Node:
        operands = [self._sum()]
        operators: list[str] = []
        position = operands[0].position
        while token := self._take(*_COMPARISONS):
            operators.append(token.text)
            position = token.position
            operands.append(self._sum())
        if not operators:
            return operands[0]
        for operand in operands:
            _require(operand, predicate=False)
        return Node(
            "compare", position, tuple(operands), operators=tuple(operators), is_predicate=True
        )

    def _sum(self) -> Node:
        return self._left_associative(("+", "-"), self._product)

    def _product(self) -> Node:
        return self._left_associative(("*", "//", "%"), self._unary)

    def _left_associative(self, operators: tuple[str, ...], inner: Callable[[], Node]) -> Node:
        left = inner()
        length = 0
        while token := self._take(*operators):
            length += 1
            if length > MAX_CHAIN:
                raise ExpressionError(f"more than {MAX_CHAIN} operators in a row", token.position)
            right = inner()
            _require(left, predicate=False)
            _require(right, predicate=False)
            left = Node(token.text, token.position, (left, right))
        return left

    def _unary(self) -> Node:
        token = self._take("-", "+")
        if token is None:
            return self._primary()
        self._enter(token.position)
        operand = _require(self._unary(), predicate=False)
        self._depth -= 1
        zero = Node("number", token.position)
        return Node(token.text, token.position, (zero, operand))

    def _primary(self) -> Node:
        token = self._peek()
        self._index += 1
        if token.kind == "number":
            return _number(token)
        if token.kind == "name":
            return self._named(token)
        if token.text == "(" and token.kind == "op":
            self._enter(token.position)
            node = self._disjunction()
            self._expect(")", token)
            self._depth -= 1
            return node
        raise ExpressionError(f"expected a number or a name, got {token.text}", token.position)

    def _expect(self, text: str, opened: _Token) -> None:
        if self._take(text) is None:
            raise ExpressionError(f"the {opened.text!r} is not closed", opened.position)

    def _named(self, token: _Token) -> Node:
        if token.text in ("true", "false"):
            return Node("bool", token.position, value=int(token.text == "true"), is_predicate=True)
        if token.text in _WORDS:
            raise ExpressionError(f"{token.text!r} has nothing before it", token.position)
        opening = self._take("(")
        if opening is None:
            if token.text in FUNCTIONS:
                raise ExpressionError(f"{token.text} needs its arguments", token.position)
            return Node("name", token.position, name=token.text)
        if token.text not in FUNCTIONS:
            allowed = ", ".join(FUNCTIONS)
            raise ExpressionError(
                f"no function is called {token.text!r}; there are {allowed}", token.position
            )
        self._enter(token.position)
        arguments = [_require(self._disjunction(), predicate=False)]
        while self._take(","):
            arguments.append(_require(self._disjunction(), predicate=False))
        self._expect(")", opening)
        self._depth -= 1
        least, most = FUNCTIONS[token.text]
        if not least <= len(arguments) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise ExpressionError(
                f"{token.text} takes {wanted} arguments, not {len(arguments)}", token.position
            )
        return Node(token.text, token.position, tuple(arguments))


def _number(token: _Token) -> Node:
    if len(token.text) > 19 or int(token.text) > MAX_VALUE:
        raise ExpressionError("the number exceeds 2^63 - 1", token.position)
    return Node("number", token.position, value=int(token.text))


def _require(node: Node, *, predicate: bool) -> Node:
    if node.is_predicate is not predicate:
        wanted, got = ("condition", "number") if predicate else ("number", "condition")
        raise ExpressionError(f"expected a {wanted}, got a {got}", node.position)
    return node


@lru_cache(maxsize=4096)
def parse(text: str) -> Node:
    """Return the tree of an expression or predicate.

    Raises:
        ExpressionError: The text is in neither form, too long or nested too deeply.
    """
    return _Parser(text).whole()
