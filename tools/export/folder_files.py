"""All files of an export, by their path in its folder.

The test gets kopt's oracle and gates, unchanged but for their imports, with everything of kopt that
they import: what passes there passes here, with fresh inputs of any seed.
"""

import ast
import keyword
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import PurePosixPath

from kopt.config.errors import ToolError
from kopt.config.plain_text import plain
from kopt.kernels.problem import tensor_size_bytes
from kopt.tools.pytorch.graph import FILE_NAME

from .built_forms import cuda_files, torch_files, tvm_ffi_files
from .device_code import DeviceCode, device_code
from .dispatch_file import dispatch_file
from .exported_kernel import ExportedKernel, Form
from .file_text import filled, provenance_line
from .kernelbench_form import kernelbench_files
from .module_form import module_files
from .readme import readme
from .route_file import route_file
from .routes import Route, plan_routes
from .signature import Signature
from .trace_form import trace_files

_CPP_WORDS = """
alignas alignof and asm auto bool break case catch char class const constexpr continue decltype
default delete do double else enum explicit export extern false float for friend goto if inline int
long mutable namespace new noexcept not nullptr operator or private protected public register return
short signed sizeof static struct switch template this throw true try typedef typename union
unsigned using virtual void volatile while xor
"""
_OWN_WORDS = """
params stream error place launch run device device_of guard reason scratch torch tvm
"""
_RESERVED = frozenset((*_CPP_WORDS.split(), *_OWN_WORDS.split(), *keyword.kwlist))


def refuse_reserved_names(exported: ExportedKernel) -> None:
    """Refuse tensors, scalars and scratch buffers that generated code could not name.

    Raises:
        ToolError: One is called like a keyword, or like a variable of the generated code.
    """
    problem = exported.problem
    names = [tensor.name for tensor in problem.tensors]
    names += [scalar.name for scalar in problem.scalars]
    names += [buffer.name for buffer in exported.header.scratch]
    for name in names:
        if name in _RESERVED:
            raise ToolError(
                f"{name!r} of {problem.name} is a word of the generated code: it cannot be exported"
                " under that name"
            )


Texts = dict[str, str]
Files = dict[str, str | bytes]


def folder_files(exported: ExportedKernel, form: Form, *, module: bool = False) -> Files:
    """Return every file of the export of `exported` as `form`, with `module` of an nn.Module too.

    Raises:
        ToolError: The kernel or its problem is not what this form can hold.
    """
    refuse_reserved_names(exported)
    code = device_code(plain(exported.candidate.source))
    signature = Signature(exported, code.alignment_bytes)
    routes = plan_routes(exported)
    sources = source_files(signature, routes, code)
    return {
        "README.md": readme(signature, routes, form, module=module),
        "LICENSE": files("kopt").joinpath("LICENSE").read_text("utf-8"),
        **_form_files(signature, routes, sources, form),
        **(module_files(signature) if module else {}),
        **_test_files(exported),
    }


def _form_files(
    signature: Signature, routes: tuple[Route, ...], sources: Texts, form: Form
) -> Files:
    if form == "flashinfer-trace":
        return trace_files(signature, sources)
    if form == "kernelbench":
        return {**kernelbench_files(signature, routes, sources)}
    folder = "src" if form == "cuda" else f"{signature.exported.name}/csrc"
    files_of = {"cuda": cuda_files, "torch": torch_files, "tvm-ffi": tvm_ffi_files}[form]
    placed = {f"{folder}/{path}": text for path, text in sources.items()}
    return {**placed, **files_of(signature, routes)}


def source_files(signature: Signature, routes: tuple[Route, ...], code: DeviceCode) -> Texts:
    """Return the C++ sources that every form shares: device code, launchers, interface."""
    name = signature.exported.name
    words = {
        **signature.words,
        "routes": routes,
        "code": code,
        "provenance": provenance_line(signature.exported),
    }
    result = {
        f"{name}.h": filled("interface.h", **words),
        f"{name}.cu": dispatch_file(signature, routes),
        f"{name}_device.cuh": filled("device.cuh", **words),
        **{f"{name}_{route.tag}.cu": route_file(signature, route, code) for route in routes},
        **{f"kopt/{file}": text for file, text in code.headers.items()},
    }
    shared = ["routes.h", "integers.h", "launching.h"]
    if any("tensor_map.h" in text for text in result.values()):
        shared.append("tensor_map.h")
    return result | {file: filled(file, **words) for file in shared}


def _test_files(exported: ExportedKernel) -> Files:
    smallest = min(
        exported.domain,
        key=lambda workload: sum(
            tensor_size_bytes(tensor, workload.axes) for tensor in exported.problem.tensors
        ),
    )
    workloads = tuple(workload.name for workload in exported.domain)
    run = filled("test_run.py", workloads=workloads, workload=smallest.name)
    below: Files = {"run.py": run, **oracle_files(exported)}
    return {f"test/{path}": text for path, text in below.items()}


PACKAGE = "kopt_oracle"
_ROOTS = ("tools/check/judge.py", "tools/check/case_data.py", "tools/check/unwritten_gate.py")
_FROM_KOPT = re.compile(r"^(\s*)from kopt\.", re.MULTILINE)
_NOTE = "# Part of kopt, with its imports renamed. SPDX-License-Identifier: Apache-2.0\n"


def oracle_files(exported: ExportedKernel) -> Files:
    """Return the files by their path below the test's folder; an import's with graph and arrays."""
    oracle = (exported.problem.folder / "oracle.py").read_text("utf-8")
    modules = _closure([*_ROOTS, *_imported("oracle.py", oracle)])
    folders = {str(parent) for path in modules for parent in PurePosixPath(path).parents}
    result: Files = {f"{PACKAGE}/{path}": _NOTE + _renamed(text) for path, text in modules.items()}
    for folder in sorted(folders):
        path = f"{PACKAGE}/{folder}/__init__.py".replace("/./", "/")
        result[path] = '"""Part of kopt: its oracle and gates."""\n'
    result["oracle.py"] = _NOTE + _renamed(oracle)
    result["problem.json"] = exported.problem.model_dump_json(indent=1, exclude={"folder"}) + "\n"
    place = exported.problem.folder
    data = (*place.glob(FILE_NAME), *place.glob("*.npy"))
    return result | {path.name: path.read_bytes() for path in data}


def _closure(paths: list[str]) -> dict[str, str]:
    """Return the text of every module of kopt that `paths` reach, themselves included."""
    root = files("kopt")
    found: dict[str, str] = {}
    pending = list(paths)
    while pending:
        path = pending.pop()
        if path not in found:
            found[path] = root.joinpath(path).read_text("utf-8")
            pending += _imported(path, found[path])
    return dict(sorted(found.items()))


def _imported(path: str, text: str) -> Iterator[str]:
    """Give the modules of kopt that `text`, the module at `path`, imports from."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            if node.level == 1:
                yield str(PurePosixPath(path).parent / f"{node.module.replace('.', '/')}.py")
            elif node.module.startswith("kopt."):
                yield node.module.removeprefix("kopt.").replace(".", "/") + ".py"


def _renamed(text: str) -> str:
    return _FROM_KOPT.sub(rf"\1from {PACKAGE}.", text)
