"""What takes the place of an imported module: its state, its arguments, its constants as code."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pydantic import ValidationError

from kopt.config.errors import ToolError
from kopt.kernels.problem import tensor_shape
from kopt.tools.pytorch.drawing import stored_file
from kopt.tools.pytorch.graph import FILE_NAME, Graph, GraphInput, read_graph
from kopt.tools.pytorch.importing.forward_call import ForwardCall
from kopt.tools.pytorch.importing.stage import MODEL_FILE, ImportResult
from kopt.tools.pytorch.library_side import IMPORT_NAME

from .signature import Signature

CONSTANT_BYTES = 1 << 20
"""The most that constants may take in a file of text."""


@dataclass(frozen=True)
class ModuleFacts:
    """An imported function that an export takes the place of."""

    signature: Signature
    graph: Graph
    call: ForwardCall
    imported: ImportResult

    @property
    def folder(self) -> Path:
        """The problem's folder."""
        return self.signature.exported.problem.folder

    @property
    def model_text(self) -> str | None:
        """The user's file; None for a module of an installed package."""
        path = self.folder / MODEL_FILE
        return path.read_text("utf-8") if path.is_file() else None

    @cached_property
    def state(self) -> tuple[GraphInput, ...]:
        """Parameters and buffers that the function reads."""
        return tuple(one for one in self.graph.inputs if one.path)

    @cached_property
    def constants(self) -> tuple[GraphInput, ...]:
        """Tensors that are part of the function and no state of the module."""
        return tuple(one for one in self.graph.inputs if one.kind == "constant")

    @property
    def parameters(self) -> str:
        """The parameters of forward behind self."""
        return ", ".join(("self", *(one.name for one in self.call.arguments)))

    @property
    def values(self) -> tuple[tuple[str, str], ...]:
        """Arguments that are numbers, each with the only value that the kernel serves."""
        return tuple(
            (one.name, repr(one.value)) for one in self.call.arguments if one.kind == "value"
        )

    def tensors(self) -> Iterator[tuple[str, str]]:
        """Yield each tensor that the kernel reads, with the expression that gives it."""
        arguments = {one.tensor: one.name for one in self.call.arguments if one.tensor}
        for given in self.graph.inputs:
            if given.path:
                yield given.name, attribute(given.path)
            elif given.kind == "constant":
                yield given.name, f'self._kopt_constant("{given.name}", {self._first_input})'
            else:
                yield given.name, arguments[given.name]

    @property
    def _first_input(self) -> str:
        return next((one.name for one in self.call.arguments if one.tensor), "None")

    @property
    def returned(self) -> str:
        """The expression of what forward returns, of a tuple `outputs`."""
        return {"tensor": "outputs[0]", "list": "list(outputs)"}.get(self.call.returns, "outputs")

    @cached_property
    def constant_files(self) -> tuple["ConstantFile", ...]:
        """The values of each constant at each workload of the kernel.

        Raises:
            ToolError: A file is missing.
        """
        exported = self.signature.exported
        first = next((one.tensor for one in self.call.arguments if one.tensor), None)
        if self.constants and first is None:
            raise ToolError(f"{exported.name} reads no argument: nothing chooses its constants")
        return tuple(
            ConstantFile(
                given.name,
                tensor_shape(exported.problem.tensor(first or ""), workload.axes),
                stored_file(given, self.folder, workload),
                given.type.dtype,
            )
            for given in self.constants
            for workload in exported.domain
        )


@dataclass(frozen=True)
class ConstantFile:
    """A tensor that is part of the function, at one workload."""

    name: str
    shape: tuple[int, ...]
    """The shape of the first input there, by which it is chosen."""
    path: Path
    dtype: str

    @property
    def file(self) -> str:
        """The file's name."""
        return self.path.name

    @property
    def embedded(self) -> str:
        """The file as base64."""
        return base64.b64encode(self.path.read_bytes()).decode("ascii")


def attribute(path: str) -> str:
    """Return a key of the state_dict as an expression on `self`."""
    found = "self"
    for part in path.split("."):
        found = f"{found}.{part}" if part.isidentifier() else f'getattr({found}, "{part}")'
    return found


def module_facts(signature: Signature) -> ModuleFacts:
    """Return the module that the problem of a kernel was imported from.

    Raises:
        ToolError: It was not, or its call is one that generated code cannot make.
    """
    folder = signature.exported.problem.folder
    name = signature.exported.name
    if not (folder / FILE_NAME).is_file():
        raise ToolError(
            f"{name} was not imported from PyTorch: only of such a problem a module is known"
            " (kopt new); export it --as torch without --module"
        )
    try:
        imported = ImportResult.model_validate_json((folder / IMPORT_NAME).read_bytes())
    except (OSError, ValidationError) as error:
        raise ToolError(f"{folder / IMPORT_NAME} is missing or damaged: import it again") from error
    if imported.call is None or not imported.call.is_plain:
        raise ToolError(
            f"forward of {name} takes or returns more than tensors in a row, or was imported by a"
            " kopt that did not note its call: export it --as torch without --module"
        )
    return ModuleFacts(signature, read_graph(folder), imported.call, imported)
