"""Expressions and predicates of a header as C++ and as Python text.

C++ text uses 64-bit integers. Axes are at least 1 where it is evaluated, so `/` and `%` floor as
in the header unless an operand is a difference; those go through `floor_div` and `floor_mod` of
`templates/launching.h`.
"""

from collections.abc import Iterable, Mapping

from kopt.kernels.expression_parser import ExpressionNode, parse

_WORDS = {"and": " && ", "or": " || "}
_SUM, _PRODUCT, _ATOM = 1, 2, 3
_PRECEDENCE = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "//": _PRODUCT, "%": _PRODUCT}


def cpp_expression(text: str, names: Mapping[str, str] | None = None) -> str:
    """Return an integer expression of a header or a problem.yaml as C++.

    `names` has the C++ text of names that are not spelled as they are.
    """
    return _cpp(parse(text), names or {})[0]


def cpp_product(texts: Iterable[str]) -> str:
    """Return the product of integer expressions as C++."""
    parts = [_cpp(parse(text), {}) for text in texts]
    return " * ".join(
        text if binds >= _PRODUCT and "/" not in text else f"({text})" for text, binds in parts
    )


def cpp_predicate(text: str, names: Mapping[str, str] | None = None) -> str:
    """Return a predicate as a C++ condition."""
    return _condition(parse(text), names or {})


def python_expression(text: str) -> str:
    """Return an integer expression as Python."""
    return _python(parse(text))


def divisibility(text: str) -> tuple[str, int] | None:
    """Return `("K", 16)` for `K // 16`: a computed axis that is exact for multiples only."""
    node = parse(text)
    if node.kind != "//":
        return None
    left, right = node.children
    return (left.name, right.value) if left.kind == "name" and right.kind == "number" else None


def _cpp(node: ExpressionNode, names: Mapping[str, str]) -> tuple[str, int]:
    """Return the text and how tightly it binds."""
    if node.kind == "number":
        return str(node.value), _ATOM
    if node.kind == "name":
        return names.get(node.name, node.name), _ATOM
    if node.kind in ("//", "%") and any(_may_be_negative(child) for child in node.children):
        helper = "floor_div" if node.kind == "//" else "floor_mod"
        return _call(helper, node, names), _ATOM
    if node.kind in _PRECEDENCE:
        return _infix(node, names), _PRECEDENCE[node.kind]
    if node.kind in ("min", "max"):
        arguments = ", ".join(f"std::int64_t{{{_cpp(child, names)[0]}}}" for child in node.children)
        many = f"{{{arguments}}}" if len(node.children) > 2 else arguments
        return f"std::{node.kind}({many})", _ATOM
    return _call(node.kind, node, names), _ATOM


def _infix(node: ExpressionNode, names: Mapping[str, str]) -> str:
    own = _PRECEDENCE[node.kind]
    left, right = (_cpp(child, names) for child in node.children)
    before = left[0] if left[1] >= own else f"({left[0]})"
    after = right[0] if right[1] > own else f"({right[0]})"
    return f"{before} {'/' if node.kind == '//' else node.kind} {after}"


def _call(function: str, node: ExpressionNode, names: Mapping[str, str]) -> str:
    return f"{function}({', '.join(_cpp(child, names)[0] for child in node.children)})"


def _may_be_negative(node: ExpressionNode) -> bool:
    return node.kind == "-" or any(_may_be_negative(child) for child in node.children)


def _condition(node: ExpressionNode, names: Mapping[str, str]) -> str:
    if node.kind == "bool":
        return "true" if node.value else "false"
    if node.kind == "not":
        return f"!({_condition(node.children[0], names)})"
    if node.kind in _WORDS:
        return _WORDS[node.kind].join(_part(child, names) for child in node.children)
    texts = [_cpp(child, names)[0] for child in node.children]
    pairs = zip(texts, node.operators, texts[1:], strict=False)
    return " && ".join(f"{left} {sign} {right}" for left, sign, right in pairs)


def _part(node: ExpressionNode, names: Mapping[str, str]) -> str:
    text = _condition(node, names)
    return f"({text})" if node.kind in _WORDS or len(node.operators) > 1 else text


def _python(node: ExpressionNode) -> str:
    if node.kind == "number":
        return str(node.value)
    if node.kind == "name":
        return node.name
    parts = [_python(child) for child in node.children]
    if node.kind == "ceil_div":
        return f"-(-({parts[0]}) // ({parts[1]}))"
    if node.kind == "align_up":
        return f"-(-({parts[0]}) // ({parts[1]})) * ({parts[1]})"
    if node.kind == "next_pow2":
        return f"1 << ({parts[0]} - 1).bit_length()"
    if node.kind in ("min", "max"):
        return f"{node.kind}({', '.join(parts)})"
    left, right = (
        text if child.kind in ("number", "name") else f"({text})"
        for text, child in zip(parts, node.children, strict=True)
    )
    return f"{left} {node.kind} {right}"
