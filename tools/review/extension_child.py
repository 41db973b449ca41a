"""Builds a torch extension, or calls it once: the script that runs alone in the sandbox.

It imports nothing of kopt, and nothing that it says decides anything: outputs go back as bytes,
which the caller judges. A call comes after another one on other contents of the same tensors, so
that a result that is kept from call to call is a wrong one.
"""

import importlib
import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

NAME = "reviewed_extension"
"""The module's name: TORCH_EXTENSION_NAME of the build."""


class CallFailure(Exception):
    """What keeps the call from giving its outputs; the message says it."""


def main(folder: Path) -> None:
    """Do what `job.json` in `folder` says and write `answer.json`."""
    job = json.loads((folder / "job.json").read_text("utf-8"))
    torch = importlib.import_module("torch")
    answer: dict[str, Any] = {"failure": None}
    try:
        if job["step"] == "build":
            _build(job, folder)
        else:
            _call(torch, job, folder)
    except CallFailure as error:
        answer["failure"] = str(error)
    except Exception as error:  # of the extension, or of the compiler: the caller says what it is
        answer["failure"] = f"{type(error).__name__}: {error}"
    (folder / "answer.json").write_text(json.dumps(answer), "utf-8")


def _build(job: dict[str, Any], folder: Path) -> None:
    extension = importlib.import_module("torch.utils.cpp_extension")
    extension.load(
        name=NAME,
        sources=[str(folder / job["source"])],
        build_directory=str(folder),
        extra_cflags=["-O3"],
        extra_cuda_cflags=["-O3"],
        is_python_module=job["is_module"],
    )


def _call(torch: Any, job: dict[str, Any], folder: Path) -> None:
    function = _function(torch, job)
    tensors = {spec["name"]: _tensor(torch, spec, job) for spec in job["tensors"]}
    contents = {spec["name"]: _content(torch, spec, job, folder) for spec in job["tensors"]}
    arguments = [tensors[part] if isinstance(part, str) else part for part in job["arguments"]]
    for is_last in (False, True):
        for name, tensor in tensors.items():
            content = contents[name] if is_last else _other_rows(contents[name], tensor)
            _bytes_of(torch, tensor).copy_(content)
        returned = function(*arguments)
    for spec in job["tensors"]:
        found = _named(job["results"], returned).get(spec["name"], tensors[spec["name"]])
        _write(torch, spec, found, folder)


def _function(torch: Any, job: dict[str, Any]) -> Any:
    if not job["is_module"]:
        torch.ops.load_library(job["library"])
        namespace, _, name = job["function"].partition(".")
        return getattr(getattr(torch.ops, namespace), name)
    spec = importlib.util.spec_from_file_location(NAME, job["library"])
    if spec is None or spec.loader is None:
        raise CallFailure("the build is no Python module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, job["function"]):
        raise CallFailure(f"the module has no function {job['function']}")
    return getattr(module, job["function"])


def _tensor(torch: Any, spec: dict[str, Any], job: dict[str, Any]) -> Any:
    dtype = getattr(torch, spec["dtype"])
    return torch.empty(tuple(spec["shape"]), dtype=dtype, device=job["device"])


def _bytes_of(torch: Any, tensor: Any) -> Any:
    return tensor.reshape(-1).view(torch.uint8)


def _content(torch: Any, spec: dict[str, Any], job: dict[str, Any], folder: Path) -> Any:
    """Return the bytes of an input, or the poison of an output."""
    if spec["is_given"]:
        raw = bytearray((folder / f"{spec['name']}.in").read_bytes())
        return torch.frombuffer(raw, dtype=torch.uint8).to(job["device"])
    return torch.full((spec["bytes"],), job["poison"], dtype=torch.uint8, device=job["device"])


def _other_rows(content: Any, tensor: Any) -> Any:
    """Return the same bytes with the rows in the opposite order: contents that are valid, too."""
    rows = tensor.shape[0] if len(tensor.shape) else 1
    return content.reshape(rows, -1).flip(0).reshape(-1)


def _named(names: list[str], returned: Any) -> dict[str, Any]:
    if not names:
        return {}
    if not isinstance(returned, tuple | list):
        returned = (returned,)
    values = cast(Sequence[Any], returned)
    if len(values) != len(names):
        raise CallFailure(f"it returns {len(values)} values, for {', '.join(names)}")
    return dict(zip(names, values, strict=True))


def _write(torch: Any, spec: dict[str, Any], found: Any, folder: Path) -> None:
    name, shape, dtype = spec["name"], list(spec["shape"]), getattr(torch, spec["dtype"])
    if not isinstance(found, torch.Tensor):
        raise CallFailure(f"{name} is no tensor but {type(found).__name__}")
    if found.dtype != dtype or list(found.shape) != shape:
        raise CallFailure(
            f"{name} is {found.dtype} {list(found.shape)}, and the problem has {dtype} {shape}"
        )
    raw = _bytes_of(torch, found.contiguous()).cpu()
    (folder / f"{name}.out").write_bytes(bytes(raw.numpy().tobytes()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
