"""Python that was written for a GPU, as it runs on a CPU: the device in its text is another one."""

import ast

from kopt.config.errors import ToolError


def on_cpu(text: str, name: str) -> str:
    """Return `text` with `"cuda"` for `"cpu"`, and `.cuda()` for `.cpu()`.

    Raises:
        ToolError: It is no Python.
    """
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ToolError(f"{name} is no Python: {error.msg}, line {error.lineno}") from error
    except (ValueError, RecursionError, MemoryError) as error:  # NUL bytes; nested without end
        raise ToolError(f"{name} is no Python: {error}") from error
    return ast.unparse(_OnCpu().visit(tree))


class _OnCpu(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if isinstance(node.value, str) and node.value.partition(":")[0] == "cuda":
            return ast.Constant("cpu")
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "cuda":
            return ast.Call(ast.Attribute(node.func.value, "cpu", ast.Load()), [], [])
        return node
