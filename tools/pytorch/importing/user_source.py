"""The user's Python: loaded, its integers found, a module and its inputs made at other sizes.

Runs in the child. The integers of a file are those in its top-level assignments and in the
functions that give inputs, and last the widths within its classes; of anything else those of its
example inputs and constructor.
"""

import ast
import inspect
import pkgutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, cast

from kopt.config.errors import ToolError
from kopt.config.near_matches import near_matches
from kopt.tools.pytorch.torch_library import load_torch, parts_of

from .named_integers import inner_integers, named_integers
from .request import ExportRequest

LEAST = 4
"""Integers up to this one stay: kernel sizes, strides, counts of layers."""
_NARROW = 15
"""Integers of the user's classes and functions up to this one stay: kernel sizes, mostly."""


class SizedFunction(Protocol):
    """A function at sizes that can be chosen."""

    @property
    def integers(self) -> Mapping[str, int]:
        """The integers that may be made smaller, with the user's values."""
        ...

    @property
    def inner(self) -> frozenset[str]:
        """Those of them that are made smaller last: widths within the user's classes."""
        ...

    def build(self, values: Mapping[str, int]) -> tuple[Any, tuple[Any, ...]]:
        """Return the module and its inputs, made anew, with other values of some integers."""
        ...


def load_function(request: ExportRequest) -> SizedFunction:
    """Return what `request` names.

    Raises:
        ToolError: There is nothing of that name, or it is not said what it is called with.
    """
    sys.path[:0] = [path for path in request.import_path if path not in sys.path]
    if request.source.endswith(".py") and not request.shapes:
        file = FileFunction(request, Path(request.source))
        if file.has_inputs:
            return file
    return ShapedFunction(request)


def _run_file(path: Path, tree: ast.Module | None = None) -> ModuleType:
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[path.stem] = module
    text = path.read_text("utf-8")
    code = compile(text if tree is None else tree, str(path), "exec")
    exec(code, module.__dict__)  # the user's own file, in the sandbox
    return module


def _find(namespace: ModuleType, name: str) -> Any:
    """Return what `name` or `module:name` is; dots go into attributes."""
    if ":" in name:
        module, _, name = name.partition(":")
        namespace = pkgutil.resolve_name(module)
    found: Any = namespace
    for part in name.split("."):
        if not hasattr(found, part):
            raise ToolError(f"{namespace.__name__} has no {name!r}; {_nearest(name, namespace)}")
        found = getattr(found, part)
    return found


def _nearest(name: str, namespace: ModuleType) -> str:
    own = [key for key, one in vars(namespace).items() if not isinstance(one, ModuleType)]
    return near_matches(name, [key for key in own if not key.startswith("_")])


def _entry(module: ModuleType, name: str | None) -> Any:
    if name is not None:
        return _find(module, name)
    if hasattr(module, "Model"):
        return module.Model
    torch = load_torch()
    own = [
        one for one in vars(module).values() if getattr(one, "__module__", "") == module.__name__
    ]
    classes = [one for one in own if inspect.isclass(one) and issubclass(one, torch.nn.Module)]
    functions = [
        one for one in own if inspect.isfunction(one) and not one.__name__.startswith("get_")
    ]
    found = classes or functions
    if not found:
        raise ToolError(
            f"{module.__file__} has neither a class Model, nor another torch.nn.Module or function"
            " of its own: write one, or name another file"
        )
    if len(found) > 1:
        names = ", ".join(one.__name__ for one in found)
        raise ToolError(
            f"{module.__file__}: which function is meant? Name it by --entry; there are: {names}"
        )
    return found[0]


def _arguments(given: Any) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """Return keyword and other arguments of a constructor."""
    if isinstance(given, dict):
        return cast("dict[str, Any]", given), ()
    return {}, parts_of(given) or ()


def _made(entry: Any, init: Any, request: ExportRequest) -> Any:
    """Return a module: an instance, a class with its arguments, or a function."""
    torch = load_torch()
    if isinstance(entry, torch.nn.Module):
        module = entry
    elif inspect.isclass(entry):
        named, others = _arguments(init() if callable(init) else init)
        module = entry(*others, **named)
    elif callable(entry):
        module = type("Function", (torch.nn.Module,), {"forward": staticmethod(entry)})()
    else:
        raise ToolError(f"{entry!r} is no module, class or function")
    if request.dtype:
        _convert(module, getattr(torch, request.dtype))
    made: Any = module
    return made.eval() if request.mode == "eval" else made


def _convert(module: Any, dtype: Any) -> None:
    """Convert floating-point parameters and buffers; Module.to() cannot do so to fake ones."""
    torch, converted = load_torch(), dict[int, Any]()
    for part in module.modules():
        for tensors in (part._parameters, part._buffers):
            for name, one in tensors.items():
                if one is None or not one.is_floating_point():
                    continue
                if id(one) not in converted:  # tied weights stay tied
                    other = one.detach().to(dtype)
                    is_parameter = isinstance(one, torch.nn.Parameter)
                    converted[id(one)] = torch.nn.Parameter(other) if is_parameter else other
                tensors[name] = converted[id(one)]


def _as_inputs(given: Any, request: ExportRequest) -> tuple[Any, ...]:
    torch = load_torch()
    parts = parts_of(given)
    inputs = (given,) if parts is None else parts
    if not request.dtype:
        return inputs
    dtype = getattr(torch, request.dtype)
    return tuple(
        one.to(dtype) if isinstance(one, torch.Tensor) and one.is_floating_point() else one
        for one in inputs
    )


@dataclass
class FileFunction:
    """A file with a module and functions that give its inputs, as KernelBench writes them."""

    request: ExportRequest
    path: Path
    tree: ast.Module = field(init=False)
    places: dict[str, list[ast.Constant]] = field(init=False)
    inner: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        """Find the integers."""
        try:
            self.tree = ast.parse(self.path.read_text("utf-8"), str(self.path))
        except (OSError, UnicodeDecodeError, SyntaxError) as error:
            raise ToolError(f"cannot read {self.path}: {error}") from error
        self._inputs = self.request.inputs or "get_inputs"
        self._init = self.request.init or "get_init_inputs"
        givers = (self._inputs, self._init)
        inner = inner_integers(self.tree, givers, above=_NARROW)
        self.places = {**named_integers(self.tree, givers, above=LEAST), **inner}
        self.inner = frozenset(inner)
        self._values = {name: int(at[0].value) for name, at in self.places.items()}  # type: ignore[arg-type] # only integers are kept
        self.has_inputs = ":" in self._inputs or self._inputs in {
            one.name for one in self.tree.body if isinstance(one, ast.FunctionDef)
        }

    @property
    def integers(self) -> Mapping[str, int]:
        """Integers by the name that they are assigned to, else by line and column."""
        return self._values

    def build(self, values: Mapping[str, int]) -> tuple[Any, tuple[Any, ...]]:
        """Run the file with these integers; make the module and its inputs."""
        for name, nodes in self.places.items():
            for node in nodes:
                node.value = values.get(name, self._values[name])
        module = _run_file(self.path, self.tree)
        init = _find(module, self._init) if hasattr(module, self._init.partition(":")[0]) else None
        made = _made(_entry(module, self.request.entry), init, self.request)
        return made, _as_inputs(_find(module, self._inputs)(), self.request)


@dataclass
class ShapedFunction:
    """Anything else: its integers are those of its example inputs and constructor, by value."""

    request: ExportRequest
    module: ModuleType = field(init=False)
    inner: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Load the source and find out what it is called with."""
        source, request = self.request.source, self.request
        name = request.entry
        if source.endswith(".py"):
            self.module = _run_file(Path(source))
        else:
            module_name, _, attribute = source.partition(":")
            try:
                self.module = pkgutil.resolve_name(module_name)
            except ImportError as error:
                raise ToolError(f"cannot import {module_name}: {error}") from error
            name = name or attribute or None
        self.entry = _entry(self.module, name)
        self._init = _find(self.module, request.init)() if request.init else None
        self._give = self._giver()
        numbers = [n for one in self._example() for n in getattr(one, "shape", ())]
        numbers += [n for n in self._init_values() if type(n) is int]
        self._values = {str(n): int(n) for n in sorted(set(numbers)) if n > LEAST}

    @property
    def integers(self) -> Mapping[str, int]:
        """Sizes by their value: equal ones change together."""
        return self._values

    def _giver(self) -> Callable[[], Any]:
        request, torch = self.request, load_torch()
        if request.shapes:
            dtype = getattr(torch, request.dtype or "float32")
            return lambda: [torch.randn(shape, dtype=dtype) for shape in self._ordered_shapes()]
        name = request.inputs or "get_inputs"
        if request.inputs is None and not hasattr(self.module, name):
            raise ToolError(
                f"{request.source} has no get_inputs(): say by --inputs what returns its example"
                " inputs, or give their shapes, as in --shape x=16,4096"
            )
        give: Callable[[], Any] = _find(self.module, name)
        return give

    def _ordered_shapes(self) -> list[tuple[int, ...]]:
        entry: Any = self.entry
        forward = entry if inspect.isfunction(entry) else entry.forward
        known = [name for name in inspect.signature(forward).parameters if name != "self"]
        for name in self.request.shapes:
            if name not in known:
                raise ToolError(f"--shape {name}: the parameters are {', '.join(known)}")
        return [self.request.shapes[name] for name in known if name in self.request.shapes]

    def _init_values(self) -> list[Any]:
        named, others = _arguments(self._init)
        return [*named.values(), *others]

    def _example(self) -> tuple[Any, ...]:
        return _as_inputs(self._give(), self.request)

    def build(self, values: Mapping[str, int]) -> tuple[Any, tuple[Any, ...]]:
        """Make the module with other integers, and cut the example inputs to them."""
        other = {self._values[name]: value for name, value in values.items()}
        named, others = _arguments(self._init)
        init: Any = {name: _mapped(one, other) for name, one in named.items()}
        init = init or [_mapped(one, other) for one in others]
        made = _made(self.entry, init, self.request)
        return made, tuple(cut(one, other) for one in self._example())


def _mapped(value: Any, other: Mapping[int, int]) -> Any:
    return other.get(value, value) if type(value) is int else value


def cut(value: Any, other: Mapping[int, int]) -> Any:
    """Return a tensor with other sizes where they have those of `other`; anything else as it is."""
    if not isinstance(value, load_torch().Tensor):
        return value
    return value[tuple(slice(0, other.get(int(n), int(n))) for n in value.shape)].contiguous()
