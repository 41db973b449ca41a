"""CUDA C++ as units by tree-sitter-cuda's grammar, which the extra `docs` installs.

The grammar knows no macros: what it misreads around them is found again by `gaps.py`. Trees are
walked with a stack of our own, since sources nest deeper than Python recurses.
"""

import importlib
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kopt.tools.docs.records import Kind

from .cuda_names import function_kind, plain_name, signature_of
from .units import SourceLines, Unit, plain_comment

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_OPEN = frozenset(
    (
        *("translation_unit", "declaration_list", "linkage_specification", "ERROR"),
        *("preproc_if", "preproc_ifdef", "preproc_elif", "preproc_else", "preproc_elifdef"),
    )
)
_TYPES = frozenset(("struct_specifier", "class_specifier", "union_specifier", "enum_specifier"))
_NO_ITEM = frozenset(
    (
        *("comment", "using_declaration", ";"),
        *("preproc_include", "preproc_call", "preproc_directive", "preproc_arg"),
    )
)
_DECLARATIONS = frozenset(
    (
        *("declaration", "alias_declaration", "type_definition", "field_declaration"),
        *("preproc_def", "preproc_function_def", "expression_statement", "concept_definition"),
        *("static_assert_declaration", "template_instantiation"),
    )
)
_MOST_DESCENT = 64


@lru_cache(maxsize=1)
def _parser() -> "Parser | None":
    """Return the parser; None without the extra `docs`."""
    try:
        library: Any = importlib.import_module("tree_sitter")
        grammar: Any = importlib.import_module("tree_sitter_cuda")
    except ImportError:
        return None
    parser: Parser = library.Parser(library.Language(grammar.language()))
    return parser


def has_grammar() -> bool:
    """Say whether `tree_units` can be called."""
    return _parser() is not None


def tree_units(source: SourceLines) -> list[Unit]:
    """Return the units of a file in order; what the grammar does not understand is left out.

    Raises:
        ImportError: The extra `docs` is not installed.
    """
    parser = _parser()
    if parser is None:
        raise ImportError("tree-sitter-cuda is not installed: pip install 'kopt-mcp[docs]'")
    data = source.text.encode("utf-8", errors="replace")
    root = parser.parse(data).root_node
    units = (_unit_of(node, scope, source) for node, scope in _items(root))
    return [unit for unit in units if unit is not None]


def _items(root: "Node") -> Iterator[tuple["Node", tuple[str, ...]]]:
    """Yield the items of a file in order, each with the namespaces around it."""
    stack: list[tuple[Node, tuple[str, ...]]] = [(root, ())]
    while stack:
        node, scope = stack.pop()
        if node.type == "namespace_definition":
            name = node.child_by_field_name("name")
            body = node.child_by_field_name("body")
            inner = (*scope, *_text(name).split("::")) if name else scope
            if body is not None:
                stack.append((body, inner))
        elif node.type in _OPEN:
            stack += [(child, scope) for child in reversed(node.named_children)]
        elif node.type not in _NO_ITEM:
            yield node, scope


def _unit_of(node: "Node", scope: tuple[str, ...], source: SourceLines) -> Unit | None:
    kind, symbol, body = _described(_without_template(node))
    if kind is None:
        return None
    end = body.start_byte if body is not None else node.end_byte
    head = _slice(node, end)
    if node.type == "preproc_function_def" and "__global__" in head:
        kind = "kernel"
    code_at = node.start_point.row + 1
    start = source.comment_start(code_at)
    return Unit(
        kind=function_kind(head) if kind == "host" else kind,
        symbol=symbol,
        start_line=start,
        end_line=max(code_at, _last_line(node)),
        scope=scope,
        comment=plain_comment(source.lines[start - 1 : code_at - 1]),
        signature=signature_of(head),
    )


def _described(node: "Node") -> tuple[Kind | None, str | None, "Node | None"]:
    """Return (kind, symbol, body); kind "host" stands for any function, None for no item."""
    body = node.child_by_field_name("body")
    if node.type == "function_definition":
        return "host", _function_name(node), body
    type_node = node if node.type in _TYPES else node.child_by_field_name("type")
    if type_node is not None and type_node.type in _TYPES:
        body = type_node.child_by_field_name("body")
        name = type_node.child_by_field_name("name") or node.child_by_field_name("declarator")
        symbol = plain_name(_text(name)) if name else None
        return ("struct" if body is not None else "decl"), symbol, body
    if node.type in _DECLARATIONS:
        return "decl", _declared_name(node), None
    return None, None, None


def _without_template(node: "Node") -> "Node":
    for _ in range(_MOST_DESCENT):
        if node.type != "template_declaration" or not node.named_children:
            return node
        node = node.named_children[-1]
    return node


def _function_name(node: "Node") -> str | None:
    declarator = node.child_by_field_name("declarator")
    for _ in range(_MOST_DESCENT):
        if declarator is None:
            return None
        if declarator.type == "function_declarator":
            inner = declarator.child_by_field_name("declarator")
            return plain_name(_text(inner)) if inner is not None else None
        inner = declarator.child_by_field_name("declarator")
        if inner is None and declarator.named_children:  # references have no field for it
            inner = declarator.named_children[-1]
        if inner is None:
            return plain_name(_text(declarator))
        declarator = inner
    return None


def _declared_name(node: "Node") -> str | None:
    name = node.child_by_field_name("name") or node.child_by_field_name("declarator")
    for _ in range(_MOST_DESCENT):
        inner = name.child_by_field_name("declarator") if name is not None else None
        if inner is None:
            break
        name = inner
    if name is None and node.named_children:
        name = node.named_children[0]
        name = name.child_by_field_name("function") or name
    words = _text(name).split() if name is not None else []
    return words[-1][:120] if words else None


def _last_line(node: "Node") -> int:
    end = node.end_point
    return end.row + (1 if end.column else 0)  # directives end with their newline


def _slice(node: "Node", end: int) -> str:
    data = node.text or b""
    return data[: end - node.start_byte].decode("utf-8", errors="replace")


def _text(node: "Node") -> str:
    return (node.text or b"").decode("utf-8", errors="replace")
