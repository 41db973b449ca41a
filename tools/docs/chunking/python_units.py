"""Python as units by `ast`; where this Python cannot parse a file, its statements one by one.

Decorators of Triton, Gluon, CuTe DSL and TileLang decide what runs on the device.
"""

import ast
import re
import warnings
from collections.abc import Iterator, Sequence

from kopt.tools.docs.records import Kind

from .units import SourceLines, Unit, one_line

LONG_CLASS = 90
"""Lines; longer classes are given as their head and their methods."""
LONG_METHOD = 10
LEAST_HOST_LINES = 6
"""Code lines of a host function that is kept."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_KERNEL = re.compile(r"(?:\w+\.)*(?:autotune|heuristics|prim_func|kernel)\b")
_CUTE_JIT = re.compile(r"(?:cute\.jit|cutlass\.jit|dsl_user_op)\b|(?:\w+\.)*dsl_user_op\b")
_JIT = re.compile(r"(?!cute\.|cutlass\.)(?:\w+\.)*(?:\w+_)?jit\b")
_AT_MARGIN = re.compile(r"(?<=\n)(?=[^\s#)\]}])")


def python_units(source: SourceLines) -> list[Unit]:
    """Return the functions and classes of a file in order, with the statements between them."""
    body = _parsed(source.text)
    if body is None:  # some of it is newer than this Python, too deep, or no Python
        body = _parsed("".join(_parsable(source.text))) or []
    units: list[Unit] = []
    stack = body[::-1]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.If | ast.Try):  # functions that a platform chooses
            stack += _branches(node)[::-1]
        elif isinstance(node, ast.ClassDef):
            units += _class_units(node, source)
        elif isinstance(node, _Function):
            units.append(_function_unit(node, source, ()))
        elif not isinstance(node, ast.Import | ast.ImportFrom):
            units.append(_statement_unit(node, source))
    return units


def is_worthwhile(unit: Unit, source: SourceLines) -> bool:
    """Say whether `unit` is long enough: a host function says little in a few lines."""
    code = source.code_lines(unit.start_line, unit.end_line)
    return unit.kind != "host" or code >= LEAST_HOST_LINES


def _parsed(text: str) -> list[ast.stmt] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escapes in the source that is read
            return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _parsable(text: str) -> Iterator[str]:
    """Yield each statement with all below it; blank lines for what is no Python."""
    decorators = ""
    for part in _AT_MARGIN.split(text):
        block = decorators + part
        decorators = block if part.startswith("@") else ""
        if not decorators:
            yield "\n" * block.count("\n") if _parsed(block) is None else block


def _branches(node: ast.If | ast.Try) -> list[ast.stmt]:
    handlers = [one for handler in getattr(node, "handlers", []) for one in handler.body]
    return [*node.body, *handlers, *node.orelse, *getattr(node, "finalbody", [])]


def _function_unit(node: _Function, source: SourceLines, scope: tuple[str, ...]) -> Unit:
    start = _start(node, source)
    body_at = node.body[0].lineno
    head = "\n".join(source.lines[node.lineno - 1 : max(node.lineno, body_at - 1)])
    decorators = _decorators(node, source)
    return Unit(
        kind=_function_kind(node, source),
        symbol=".".join((*scope, node.name)),
        start_line=start,
        end_line=node.end_lineno or node.lineno,
        scope=scope,
        comment=_documented(node, source, start),
        signature=one_line(" ".join([*(f"@{one}" for one in decorators), head])).rstrip(":"),
    )


def _class_units(node: ast.ClassDef, source: SourceLines) -> list[Unit]:
    start = _start(node, source)
    end = node.end_lineno or node.lineno
    methods = [
        _function_unit(member, source, (node.name,))
        for member in node.body
        if isinstance(member, _Function)
    ]
    long = [
        method
        for method in methods
        if method.lines > LONG_METHOD and method.start_line > node.lineno
    ]
    is_whole = end - start < LONG_CLASS
    head = Unit(
        kind="class",
        symbol=node.name,
        start_line=start,
        end_line=end,
        comment=_documented(node, source, start),
        signature=one_line(source.lines[node.lineno - 1]).rstrip(":"),
        folded=() if is_whole else tuple((one.start_line, one.end_line) for one in long),
    )
    return [head] if is_whole else [head, *long]


def _statement_unit(node: ast.stmt, source: SourceLines) -> Unit:
    names = [
        target.id
        for target in (node.targets if isinstance(node, ast.Assign) else [])
        if isinstance(target, ast.Name)
    ]
    is_function = any(isinstance(inner, _Function) for inner in ast.iter_child_nodes(node))
    return Unit(
        kind="host" if is_function else "decl",
        symbol=names[0] if names else None,
        start_line=node.lineno,
        end_line=node.end_lineno or node.lineno,
    )


def _start(node: _Function | ast.ClassDef, source: SourceLines) -> int:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    while first > 1 and source.lines[first - 2].lstrip().startswith("#"):
        first -= 1
    return first


def _documented(node: _Function | ast.ClassDef, source: SourceLines, start: int) -> str:
    above = [line.strip("# ") for line in source.lines[start - 1 : node.lineno - 1] if "#" in line]
    said = ast.get_docstring(node) or ""
    return one_line(" ".join([said, *(line for line in above if not line.startswith("@"))]))


def _decorators(node: _Function, source: SourceLines) -> list[str]:
    return [
        one_line("\n".join(source.lines[one.lineno - 1 : one.end_lineno])).lstrip("@ ")
        for one in node.decorator_list
    ]


def _function_kind(node: _Function, source: SourceLines) -> Kind:
    kind = _decorated_kind(_decorators(node, source), _gives_value(node))
    if kind != "host":
        return kind
    for inner in ast.walk(node):  # a function that makes a kernel
        if isinstance(inner, _Function) and inner.decorator_list and inner is not node:
            decorators = _decorators(inner, source)
            if _decorated_kind(decorators, _gives_value(inner)) == "kernel":
                return "kernel"
    return "host"


def _decorated_kind(decorators: Sequence[str], gives_value: bool) -> Kind:
    if any(_KERNEL.match(one) for one in decorators):
        return "kernel"
    if any(_JIT.match(one) for one in decorators):
        return "device" if gives_value else "kernel"  # a Triton kernel returns nothing
    return "device" if any(_CUTE_JIT.match(one) for one in decorators) else "host"


def _gives_value(node: _Function) -> bool:
    return any(isinstance(inner, ast.Return) and inner.value for inner in ast.walk(node))
