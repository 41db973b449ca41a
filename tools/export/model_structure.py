"""A model's Python without what it computes: constructors stay, every `forward` goes.

What is left makes the parameters and buffers in the original's order, so that the same seed gives
the same weights; nothing of it can stand in for the kernel.
"""

import ast
from collections.abc import Iterator, Sequence

from kopt.config.errors import ToolError

_GIVERS = ("get_inputs", "get_init_inputs")


def model_structure(text: str) -> tuple[list[str], list[str]]:
    """Return the imports that a model's constructors need, and its statements without forward.

    Raises:
        ToolError: It is no Python, or has no class Model.
    """
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ToolError(f"model.py is no Python: {error}") from error
    if not any(isinstance(one, ast.ClassDef) and one.name == "Model" for one in tree.body):
        raise ToolError("model.py has no class Model: a task of KernelBench has one")
    imports = [one for one in tree.body if isinstance(one, ast.Import | ast.ImportFrom)]
    others = [one for one in tree.body if one not in imports and not _is_left_out(one)]
    for one in others:
        for scope in ast.walk(one):
            _strip(scope)
    used = {one.id for other in others for one in ast.walk(other) if isinstance(one, ast.Name)}
    return _lines([one for one in imports if _binds(one, used)]), _lines(others)


def _binds(statement: ast.Import | ast.ImportFrom, used: set[str]) -> bool:
    """Return whether an import gives a name that is used; forward's own ones are not."""
    names = {(one.asname or one.name).partition(".")[0] for one in statement.names}
    return "*" in names or bool(names & used)


def _lines(statements: Sequence[ast.stmt]) -> list[str]:
    return [line for one in statements for line in ast.unparse(one).splitlines()]


def _is_left_out(statement: ast.stmt) -> bool:
    """Return whether a statement of the file gives inputs, is a text, or is run as a script."""
    if isinstance(statement, ast.FunctionDef):
        return statement.name in _GIVERS
    if isinstance(statement, ast.If):
        return any(
            isinstance(one, ast.Name) and one.id == "__name__" for one in ast.walk(statement)
        )
    return _is_text(statement)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _strip(node: ast.AST) -> None:
    """Take docstrings and, of classes, forward out of a scope."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        node.body = _kept(one for one in node.body if not _is_text(one))
    elif isinstance(node, ast.ClassDef):
        node.body = _kept(one for one in node.body if not (_is_text(one) or _is_forward(one)))


def _is_forward(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.FunctionDef) and statement.name == "forward"


def _kept(statements: Iterator[ast.stmt]) -> list[ast.stmt]:
    """Return the statements; `...` for none, since `pass` reads like a bypass to some checkers."""
    return list(statements) or [ast.Expr(ast.Constant(...))]
