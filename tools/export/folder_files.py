"""All files of an export, by their path in its folder."""

from importlib.resources import files

from kopt.kernels.problem import tensor_size_bytes

from .cuda_form import cuda_files
from .device_code import DeviceCode, device_code
from .dispatch_file import dispatch_file, routes_file
from .interface_file import interface_file
from .oracle_files import oracle_files
from .prose import comment, provenance_line
from .readme import readme
from .reserved_names import refuse_reserved_names
from .route_file import route_file
from .routes import Route, plan_routes
from .signature import Signature
from .subject import Form, Subject
from .template_files import filled
from .torch_form import torch_files
from .trace_form import trace_files
from .tvm_ffi_form import tvm_ffi_files

Texts = dict[str, str]
Files = dict[str, str | bytes]


def folder_files(subject: Subject, form: Form) -> Files:
    """Return every file of the export of `subject` as `form`.

    Raises:
        ToolError: The kernel or its problem is not what this form can hold.
    """
    refuse_reserved_names(subject)
    code = device_code(subject.candidate.source)
    signature = Signature(subject, code.alignment_bytes)
    routes = plan_routes(subject)
    sources = source_files(signature, routes, code)
    return {
        "README.md": readme(signature, routes, form),
        "LICENSE": files("kopt").joinpath("LICENSE").read_text("utf-8"),
        **_form_files(signature, routes, sources, form),
        **_test_files(subject),
    }


def _form_files(
    signature: Signature, routes: tuple[Route, ...], sources: Texts, form: Form
) -> Files:
    if form == "flashinfer-trace":
        return trace_files(signature, sources)
    if form == "cuda":
        folder, files_of = "src", cuda_files
    else:
        folder = f"{signature.subject.name}/csrc"
        files_of = torch_files if form == "torch" else tvm_ffi_files
    placed = {f"{folder}/{path}": text for path, text in sources.items()}
    return {**placed, **files_of(signature, routes)}


def source_files(signature: Signature, routes: tuple[Route, ...], code: DeviceCode) -> Texts:
    """Return the C++ sources that every form shares: device code, launchers, interface."""
    name = signature.subject.name
    result = {
        f"{name}.h": interface_file(signature),
        f"{name}.cu": dispatch_file(signature, routes),
        f"{name}_device.cuh": _device_file(signature.subject, code),
        "routes.h": routes_file(signature, routes),
        "integers.h": filled("integers.h", {"NAME": name}),
        "launching.h": filled("launching.h", {"NAME": name}),
        **{f"{name}_{route.tag}.cu": route_file(signature, route, code) for route in routes},
        **{f"kopt/{file}": text for file, text in code.headers.items()},
    }
    if any("tensor_map.h" in text for text in result.values()):
        result["tensor_map.h"] = filled("tensor_map.h", {"NAME": name})
    return result


def _device_file(subject: Subject, code: DeviceCode) -> str:
    words = (
        f"Device code of {subject.name}, as its author wrote it. {provenance_line(subject)} It is"
        " included inside a namespace, once for each build, behind the includes and macros that it"
        " needs: see the .cu files."
    )
    note = subject.header.note
    return comment(words) + (f"//\n{comment(f'Idea: {note}')}" if note else "") + "\n" + code.text


def _test_files(subject: Subject) -> Texts:
    smallest = min(
        subject.domain,
        key=lambda workload: sum(
            tensor_size_bytes(tensor, workload.axes) for tensor in subject.problem.tensors
        ),
    )
    words = {"WORKLOADS": repr(tuple(w.name for w in subject.domain)), "WORKLOAD": smallest.name}
    below = {"run.py": filled("run.py", words), **oracle_files(subject)}
    return {f"test/{path}": text for path, text in below.items()}
