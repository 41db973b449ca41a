"""How a torch extension is called: which function, with which tensors and scalars.

An extension says none of that about itself, so the reviewer does: `out = forward(input, eps)`, or
`silu(out, input)` where the function writes into what it is given.
"""

import re
from dataclasses import dataclass

from kopt.config.errors import ToolError
from kopt.config.near_matches import near_matches
from kopt.kernels.problem import Problem
from kopt.kernels.source_lexer import logical_lines

_ENTRIES = ("PYBIND11_MODULE", "TORCH_LIBRARY", "TORCH_LIBRARY_FRAGMENT")
_CALL = re.compile(r"(?:([\w\s,]+)=)?\s*([A-Za-z_]\w*(?:\.\w+)?)\s*\(([^()]*)\)")
_DEF = re.compile(r'\.\s*def\s*\(\s*"(\w+)"')
_NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:[eE]-?\d+)?")
_HEADER = re.compile(r"\s*/\*\s*kopt\s*:")


@dataclass(frozen=True)
class ExtensionCall:
    """One call of a function of an extension."""

    function: str
    """A function of the Python module, or `<namespace>.<name>` of a torch library."""
    arguments: tuple[str, ...]
    """Tensors, scalars and axes by name, and numbers."""
    results: tuple[str, ...] = ()
    """The outputs that it returns, in order."""

    def __str__(self) -> str:
        """Return the call as it is written."""
        results = f"{', '.join(self.results)} = " if self.results else ""
        return f"{results}{self.function}({', '.join(self.arguments)})"


def is_torch_extension(source: str) -> bool:
    """Return whether `source` has an entry for torch, outside comments, and no candidate's header.

    A source that no lexer can read is none.
    """
    if _HEADER.match(source) or not any(entry in source for entry in _ENTRIES):
        return False
    return any(token.text in _ENTRIES for line in logical_lines(source) for token in line.tokens)


def read_call(text: str, problem: Problem) -> ExtensionCall:
    """Return the call that `text` writes, for the tensors of `problem`.

    Raises:
        ToolError: It has another form, a name that the problem does not have, or leaves out an
            output.
    """
    found = _CALL.fullmatch(text.strip())
    if found is None:
        raise ToolError(f"--call {text!r} is not of the form 'out = forward(input, eps)'")
    call = ExtensionCall(found[2], _names(found[3]), _names(found[1] or ""))
    written = [tensor.name for tensor in problem.tensors if tensor.role != "in"]
    for name in call.results:
        if name not in written:
            raise ToolError(f"--call: {name} is no output; {near_matches(name, written)}")
    known = [tensor.name for tensor in problem.tensors]
    known += [*(scalar.name for scalar in problem.scalars), *problem.axes]
    for name in call.arguments:
        if name not in known and not _NUMBER.fullmatch(name):
            raise ToolError(f"--call: {problem.name} has no {name!r}; {near_matches(name, known)}")
    missing = [name for name in written if name not in (*call.results, *call.arguments)]
    if missing:
        raise ToolError(f"--call {text!r} neither returns nor is given {', '.join(missing)}")
    return call


def default_call(source: str, problem: Problem) -> ExtensionCall:
    """Return the call of the only function: inputs, then scalars; it returns the pure outputs.

    Raises:
        ToolError: The module has several functions, or none by name.
    """
    functions = list(dict.fromkeys(_DEF.findall(source)))
    results = tuple(tensor.name for tensor in problem.tensors if tensor.role == "out")
    given = [tensor.name for tensor in problem.tensors if tensor.role != "out"]
    arguments = (*given, *(scalar.name for scalar in problem.scalars))
    example = ExtensionCall(functions[0] if functions else "forward", arguments, results)
    if len(functions) != 1:
        what = f"it has {', '.join(functions)}" if functions else "it names no function of a module"
        raise ToolError(f"{what}: say how it is called, e.g. --call '{example}'")
    return example


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
