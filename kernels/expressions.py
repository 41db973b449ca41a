"""Values of the integer expressions and predicates in candidate headers and problem files.

`//` and `%` floor as in Python. Every intermediate value stays within 64 signed bits. The syntax is
`expression_parser.py`'s.
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from kopt.config.near_matches import near_matches

from .expression_parser import MAX_VALUE, ExpressionError, ExpressionNode, parse

__all__ = [
    "ExpressionError",
    "check_expression",
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
    return bool(_value(_of_kind(text, predicate=True), names))


def expression_names(text: str) -> frozenset[str]:
    """Return every name that an expression or predicate uses, functions left out.

    Raises:
        ExpressionError: Neither an expression nor a predicate.
    """
    return frozenset(node.name for node in _name_nodes(parse(text)))


def check_expression(text: str, names: frozenset[str], *, predicate: bool = False) -> None:
    """Check the syntax of an integer expression, or a predicate, and that it uses only `names`.

    Raises:
        ExpressionError: It does not.
    """
    for node in _name_nodes(_of_kind(text, predicate=predicate)):
        if node.name not in names:
            raise _unknown_name(node, names)


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


def _of_kind(text: str, *, predicate: bool) -> ExpressionNode:
    node = parse(text)
    if node.is_predicate is not predicate:
        wanted = "a comparison or true" if predicate else "an integer expression"
        raise ExpressionError(f"expected {wanted}, got {text.strip()!r}", node.position)
    return node


def _name_nodes(node: ExpressionNode) -> Iterator[ExpressionNode]:
    if node.kind == "name":
        yield node
    for child in node.children:
        yield from _name_nodes(child)


def _unknown_name(
    node: ExpressionNode, names: Mapping[str, int] | frozenset[str]
) -> ExpressionError:
    message = f"unknown name {node.name!r}; {near_matches(node.name, names)}"
    return ExpressionError(message, node.position)


def _value(node: ExpressionNode, names: Mapping[str, int]) -> int:
    """Return the number of `node`, or of a predicate whether it holds."""
    match node.kind:
        case "number" | "bool":
            return node.value
        case "name":
            if node.name not in names:
                raise _unknown_name(node, names)
            return names[node.name]
        case "not":
            return not _value(node.children[0], names)
        case "and":
            return all(_value(child, names) for child in node.children)
        case "or":
            return any(_value(child, names) for child in node.children)
        case "compare":
            values = [_value(child, names) for child in node.children]
            pairs = zip(node.operators, pairwise(values), strict=True)
            return all(_COMPARE[sign](*pair) for sign, pair in pairs)
        case _:
            return _result(node, [_value(child, names) for child in node.children])


def _result(node: ExpressionNode, values: list[int]) -> int:
    try:
        result = _OPERATIONS[node.kind](*values)
    except ZeroDivisionError as error:
        raise ExpressionError("division by zero", node.position) from error
    except ArithmeticError as error:
        raise ExpressionError(f"{node.kind} {error}: must be positive", node.position) from error
    if not -MAX_VALUE <= result <= MAX_VALUE:
        raise ExpressionError(f"the value of {node.kind} exceeds 2^63 - 1", node.position)
    return result


def _ceil_div(value: int, divisor: int) -> int:
    if divisor <= 0:
        raise ArithmeticError(f"by {divisor}")
    return -(-value // divisor)


def _next_pow2(value: int) -> int:
    if value < 1:
        raise ArithmeticError(f"of {value}")
    return 1 << (value - 1).bit_length()


def _align_up(value: int, step: int) -> int:
    return _ceil_div(value, step) * step


_OPERATIONS: dict[str, Callable[..., int]] = {
    "+": int.__add__,
    "-": int.__sub__,
    "*": int.__mul__,
    "//": int.__floordiv__,
    "%": int.__mod__,
    "ceil_div": _ceil_div,
    "align_up": _align_up,
    "min": min,
    "max": max,
    "next_pow2": _next_pow2,
}
