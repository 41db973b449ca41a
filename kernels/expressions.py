"""Values of the integer expressions and predicates in candidate headers and problem files.

`//` and `%` floor as in Python. Every intermediate value stays within 64 signed bits, and a
division by zero is an `ExpressionError`. The syntax is `expression_parser.py`'s.
"""

import operator
from collections.abc import Callable, Mapping

from kopt.config.near_matches import near_matches

from .expression_parser import MAX_VALUE, ExpressionError, Node, parse

__all__ = [
    "ExpressionError",
    "check_expression",
    "check_predicate",
    "evaluate_expression",
    "evaluate_predicate",
    "expression_names",
    "split_expressions",
]

_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def evaluate_expression(text: str, names: Mapping[str, int]) -> int:
    """Return the value of an integer expression.

    Raises:
        ExpressionError: Not an expression, a name that `names` lacks, a division by zero, or a
            value outside 64 signed bits.
    """
    return _value(_of_kind(text, predicate=False), names)


def evaluate_predicate(text: str, names: Mapping[str, int]) -> bool:
    """Return whether a predicate holds; `and` and `or` stop early as in Python.

    Raises:
        ExpressionError: As for `evaluate_expression`.
    """
    return _truth(_of_kind(text, predicate=True), names)


def expression_names(text: str) -> frozenset[str]:
    """Return every name that an expression or predicate uses, functions left out.

    Raises:
        ExpressionError: Neither an expression nor a predicate.
    """
    names: set[str] = set()
    pending = [parse(text)]
    while pending:
        node = pending.pop()
        if node.kind == "name":
            names.add(node.name)
        pending.extend(node.children)
    return frozenset(names)


def check_expression(text: str, names: frozenset[str]) -> None:
    """Check the syntax of an integer expression and that it uses only `names`.

    Raises:
        ExpressionError: It does not.
    """
    _check_names(_of_kind(text, predicate=False), names)


def check_predicate(text: str, names: frozenset[str]) -> None:
    """Check the syntax of a predicate and that it uses only `names`.

    Raises:
        ExpressionError: It does not.
    """
    _check_names(_of_kind(text, predicate=True), names)


def split_expressions(text: str) -> tuple[str, ...]:
    """Return the parts of `text` between the commas that stand outside parentheses."""
    parts: list[str] = []
    depth = start = 0
    for index, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    return (*parts, text[start:].strip())


def _of_kind(text: str, *, predicate: bool) -> Node:
    node = parse(text)
    if node.is_predicate is not predicate:
        wanted = "a comparison or true" if predicate else "an integer expression"
        raise ExpressionError(f"expected {wanted}, got {text.strip()!r}", node.position)
    return node


def _check_names(node: Node, names: frozenset[str]) -> None:
    if node.kind == "name" and node.name not in names:
        raise _unknown_name(node, names)
    for child in node.children:
        _check_names(child, names)


def _unknown_name(node: Node, names: Mapping[str, int] | frozenset[str]) -> ExpressionError:
    message = f"unknown name {node.name!r}; {near_matches(node.name, names)}"
    return ExpressionError(message, node.position)


def _truth(node: Node, names: Mapping[str, int]) -> bool:
    if node.kind == "bool":
        return bool(node.value)
    if node.kind == "not":
        return not _truth(node.children[0], names)
    if node.kind == "and":
        return all(_truth(child, names) for child in node.children)
    if node.kind == "or":
        return any(_truth(child, names) for child in node.children)
    values = [_value(child, names) for child in node.children]
    return all(
        _COMPARE[sign](left, right)
        for sign, left, right in zip(node.operators, values, values[1:], strict=False)
    )


def _value(node: Node, names: Mapping[str, int]) -> int:
    if node.kind == "number":
        return node.value
    if node.kind == "name":
        if node.name not in names:
            raise _unknown_name(node, names)
        return names[node.name]
    values = [_value(child, names) for child in node.children]
    result = _OPERATIONS[node.kind](node, values)
    if not -MAX_VALUE <= result <= MAX_VALUE:
        raise ExpressionError(f"the value of {node.kind} exceeds 2^63 - 1", node.position)
    return result


def _floor_divide(node: Node, values: list[int]) -> int:
    if values[1] == 0:
        raise ExpressionError("division by zero", node.position)
    return values[0] // values[1]


def _remainder(node: Node, values: list[int]) -> int:
    if values[1] == 0:
        raise ExpressionError("remainder of a division by zero", node.position)
    return values[0] % values[1]


def _ceil_div(node: Node, values: list[int]) -> int:
    if values[1] <= 0:
        raise ExpressionError(f"{node.kind} by {values[1]}: must be positive", node.position)
    return -(-values[0] // values[1])


def _align_up(node: Node, values: list[int]) -> int:
    return _ceil_div(node, values) * values[1]


def _next_pow2(node: Node, values: list[int]) -> int:
    if values[0] < 1:
        raise ExpressionError(f"next_pow2 of {values[0]}: must be positive", node.position)
    return 1 << (values[0] - 1).bit_length()


_OPERATIONS: dict[str, Callable[[Node, list[int]], int]] = {
    "+": lambda _, values: values[0] + values[1],
    "-": lambda _, values: values[0] - values[1],
    "*": lambda _, values: values[0] * values[1],
    "//": _floor_divide,
    "%": _remainder,
    "ceil_div": _ceil_div,
    "align_up": _align_up,
    "min": lambda _, values: min(values),
    "max": lambda _, values: max(values),
    "next_pow2": _next_pow2,
}
