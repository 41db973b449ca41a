"""A module and its inputs through torch.export, as the records of graph.py with plain sizes.

Core ATen operators are what is left; recurrent layers stay whole. Mutated state and what only it
needs are left out. What cannot be a graph is refused with the user's line.
"""

import operator
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kopt.config.errors import ToolError, UnjudgeableFunction
from kopt.kernels.dtypes import DTYPE_SIZE_BYTES
from kopt.tools.pytorch.graph import (
    Argument,
    Atom,
    Drawing,
    Graph,
    GraphInput,
    GraphOutput,
    Node,
    Ref,
    Special,
    ValueType,
    needed_nodes,
    refs,
)
from kopt.tools.pytorch.operators import RANDOM, base_name, is_known
from kopt.tools.pytorch.torch_library import Tensor, load_torch, module_of, parts_of

from .exported_program import exported_program
from .forward_call import ForwardCall, forward_call

_COPY = "aten.copy.default"
"""What is left of `a.copy_(b)`: `b` in the shape and dtype of `a`."""
_LEFT_OUT = ("device", "layout", "memory_format", "pin_memory", "non_blocking")
_LINE = re.compile(r'File "([^"]+)", line (\d+), in \S+\n\s+(.+)')
_KINDS = {"PARAMETER": "parameter", "BUFFER": "buffer", "CONSTANT_TENSOR": "constant"}
_TAKEN = frozenset(
    """
    auto bool break case char class const continue default delete do double else enum extern
    false float for friend goto if inline int long mutable namespace new operator private
    public register return short signed sizeof static struct switch template this throw true
    try typedef union unsigned using virtual void volatile while half
    """.split()  # noqa: SIM905 - words are read faster than a list of strings
)
"""Words of C++ that users give to arguments."""


@dataclass(frozen=True)
class ExportedModule:
    """The graph of a module, and what it was exported from."""

    graph: Graph
    module: Any
    targets: Mapping[str, str]
    """Key in the state_dict, or of a constant, by the name of the graph's input."""
    constants: Mapping[str, Any]
    """Tensors that the function's code makes, by key."""
    places: Mapping[str, int]
    """Place among the tensors of the inputs, by the name of the graph's input."""
    warnings: tuple[str, ...]
    call: ForwardCall
    unused: Mapping[str, int]
    """Arguments that no output depends on, by name, with their places among the tensors."""
    changed: frozenset[str]
    """Paths of plain attributes that forward changes, and that no output depends on."""


IMPORTED_DTYPES = frozenset(name for name in DTYPE_SIZE_BYTES if not name.startswith("float8"))
"""Dtypes that the oracle of an imported function has."""


def export_module(
    module: Any,
    inputs: tuple[Any, ...],
    user_files: Iterable[Path],
    dtypes: frozenset[str] = IMPORTED_DTYPES,
    changed: Collection[str] = (),
) -> ExportedModule:
    """Return the graph of `module` for inputs of these shapes.

    Args:
        module: A torch.nn.Module.
        inputs: Its positional arguments.
        user_files: Whose lines are told.
        dtypes: Those that its values may have.
        changed: Plain attributes that another export of the same class found changed: fake tensors
            do not tell.

    Raises:
        ToolError: torch cannot export it, or it has an operator or a dtype that kopt has not.
    """
    files = tuple(user_files)
    program, found = exported_program(module, inputs, files, changed)
    return _Reader(load_torch(), program, module, inputs, files, dtypes).read(found)


@dataclass
class _Reader:
    torch: Any
    program: Any
    module: Any
    inputs: tuple[Any, ...]
    files: tuple[Path, ...]
    dtypes: frozenset[str]

    def read(self, changed: frozenset[str]) -> ExportedModule:
        """Return the graph, where no result depends on what `changed` holds before a call."""
        self.names: dict[str, Ref] = {}
        self.used: set[str] = set()
        inputs, targets = self._inputs()
        asked = [one.name for one in inputs if one.kind == "input"]
        places = {name: place for place, name in enumerate(asked)}
        nodes = [
            made for node in self.program.graph.nodes if (made := self._node(node)) is not None
        ]
        outputs, dropped = self._outputs(self.program.graph_signature)
        nodes = needed_nodes(nodes, outputs)
        read = {ref.node for node in nodes for ref in refs(node)}
        read |= {output.value.node for output in outputs}
        inputs = [one for one in inputs if one.name in read]
        for one in inputs:
            if targets.get(one.name) in changed:
                raise ToolError(
                    f"{targets[one.name]} is an attribute that forward reads and changes: its"
                    " results depend on the calls before. Register it as a buffer"
                )
        self._refuse(nodes)
        kept = {one.name for one in inputs}
        unused = {name: place for name, place in places.items() if name not in kept}
        dropped += [f"input {name} is not used: the problem leaves it out" for name in unused]
        graph = Graph(
            torch=self.torch.__version__,
            inputs=tuple(inputs),
            nodes=tuple(nodes),
            outputs=tuple(outputs),
        )
        places = {name: place for name, place in places.items() if name in kept}
        returned = (self.program.call_spec.out_spec, len(outputs))
        call = forward_call(self.module, self.inputs, places, returned)
        constants = dict(self.program.constants)
        return ExportedModule(
            graph, self.module, targets, constants, places, tuple(dropped), call, unused, changed
        )

    def _inputs(self) -> tuple[list[GraphInput], dict[str, str]]:
        """Return the tensors that the program takes, and what those of the module are called."""
        inputs: list[GraphInput] = []
        targets: dict[str, str] = {}
        drawn = Drawing(kind="normal")
        placeholders = {n.name: n for n in self.program.graph.nodes if n.op == "placeholder"}
        for spec in self.program.graph_signature.input_specs:
            node = placeholders[spec.arg.name]
            value = node.meta.get("val")
            if not isinstance(value, self.torch.Tensor):
                continue
            kind: Any = _KINDS.get(spec.kind.name, "input")
            name = self._name(spec.target if kind != "input" and spec.target else spec.arg.name)
            self.names[node.name] = Ref(node=name)
            targets |= {name: spec.target} if spec.target else {}
            found = self._type(value, f"the {kind} {name}")
            path = spec.target or "" if kind in ("parameter", "buffer") else ""
            inputs.append(GraphInput(name=name, kind=kind, type=found, drawing=drawn, path=path))
        return inputs, targets

    def _name(self, wanted: str) -> str:
        name = re.sub(r"[^a-z0-9_]+", "_", wanted.lower()).strip("_") or "value"
        name = name if name[0].isalpha() else f"v{name}"
        name = f"{name}_" if name in _TAKEN else name[:60]
        base, number = name, 2
        while name in self.used:
            name, number = f"{base}_{number}", number + 1
        self.used.add(name)
        return name

    def _type(self, value: Tensor, of: str) -> ValueType:
        dtype = str(value.dtype).removeprefix("torch.")
        if dtype not in self.dtypes:
            raise ToolError(f"{of} has dtype {dtype}, which kopt cannot import")
        return ValueType(dtype=dtype, shape=tuple(int(n) for n in value.shape))

    def _node(self, node: Any) -> Node | None:
        if node.op != "call_function":
            return None
        if str(node.target) == _COPY and _is_alike(*node.args[:2]):
            self.names[node.name] = self.names[node.args[1].name]
            return None
        if node.target is operator.getitem:
            whole, place = node.args
            if whole.name in self.names:
                self.names[node.name] = Ref(node=self.names[whole.name].node, result=int(place))
            return None
        if not isinstance(node.target, self.torch._ops.OpOverload):
            name = getattr(node.target, "__name__", str(node.target))
            raise ToolError(f"it uses {name}, which is no operator{_at(self._source(node))}")
        value = node.meta.get("val")
        results = parts_of(value) or (value,)
        if not any(isinstance(one, self.torch.Tensor) for one in results):  # an assertion
            return None
        op, source = str(node.target), self._source(node)
        name = self._name(node.name)
        self.names[node.name] = Ref(node=name)
        schema = node.target._schema.arguments
        kwargs = {k: v for k, v in node.kwargs.items() if k not in _LEFT_OUT}
        kept = [
            value
            for value, one in zip(node.args, schema, strict=False)
            if one.name not in _LEFT_OUT
        ]
        return Node(
            name=name,
            op=op,
            args=tuple(self._argument(one) for one in kept),
            kwargs={key: self._argument(one) for key, one in kwargs.items() if one is not None},
            results=tuple(
                self._type(one, f"a result of {op}{_at(source)}")
                if isinstance(one, self.torch.Tensor)
                else None
                for one in results
            ),
            source=source,
            module=module_of(node),
        )

    def _argument(self, value: Any) -> Argument:
        parts = parts_of(value)
        return self._atom(value) if parts is None else tuple(self._atom(one) for one in parts)

    def _atom(self, value: Any) -> Atom:
        if hasattr(value, "meta") and hasattr(value, "op"):
            return self.names[value.name]
        if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
            word: Any = "nan" if value != value else "inf" if value > 0 else "-inf"
            return Special(special=word)
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, self.torch.dtype):
            return str(value).removeprefix("torch.")
        if isinstance(value, self.torch.SymInt):
            return int(value)
        raise ToolError(f"an operator takes {value!r}, which kopt cannot import")

    def _source(self, node: Any) -> str:
        """Return `model.py:23: x = self.linear(x)`, the last line in the user's files."""
        lines = _LINE.findall(node.meta.get("stack_trace") or "")
        own = [one for one in lines if Path(one[0]) in self.files]
        if not own:
            own = [one for one in lines if "/torch/" not in one[0]]
        if not own:
            return ""
        file, number, text = own[-1]
        return f"{Path(file).name}:{number}: {text.strip()[:100]}"

    def _outputs(self, signature: Any) -> tuple[list[GraphOutput], list[str]]:
        outputs: list[GraphOutput] = []
        dropped: list[str] = []
        user = [one for one in signature.output_specs if one.kind.name == "USER_OUTPUT"]
        for spec in signature.output_specs:
            if spec.kind.name == "USER_OUTPUT":
                ref = self.names.get(getattr(spec.arg, "name", ""))
                if ref is not None:
                    name = self._name("out" if len(user) == 1 else f"out{len(outputs)}")
                    outputs.append(GraphOutput(name=name, value=ref))
            elif not (spec.target or "").endswith("num_batches_tracked"):
                dropped.append(f"{spec.target or spec.arg.name} is changed in place: left out")
        if not outputs:
            raise ToolError("the function returns no tensor")
        return outputs, dropped

    def _refuse(self, nodes: list[Node]) -> None:
        for node in nodes:
            name = base_name(node.op)
            if name in RANDOM:
                raise UnjudgeableFunction(
                    f"{node.op} draws random numbers{_at(node.source)}: no answer is right. With"
                    " --mode eval dropout is left out",
                    "random",
                )
            if not is_known(node.op):
                raise ToolError(
                    f"{node.op} is an operator that kopt cannot import{_at(node.source)};"
                    " docs/pytorch.md lists those that it can"
                )


def _is_alike(one: Any, other: Any) -> bool:
    """Return whether two nodes have tensors of one shape and dtype."""
    first, second = (getattr(node, "meta", {}).get("val") for node in (one, other))
    if first is None or second is None:
        return False
    return bool(first.shape == second.shape and first.dtype == second.dtype)


def _at(source: str) -> str:
    return f" ({source})" if source else ""
