"""What FlashInfer-Trace demands of Definitions, Solutions and Workloads, as plain assertions.

Source: the schema modules of flashinfer-bench 0.1 (data/definition.py, solution.py, workload.py,
trace.py); torch, which they need, is not installed where these tests run.
"""

import ast
import re
from pathlib import PurePosixPath
from typing import Any

DTYPES = {
    *("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1"),
    *("int64", "int32", "int16", "int8", "bool"),
}
LANGUAGES = {"python", "triton", "cpp", "cuda", "tilelang"}


def check_definition(document: dict[str, Any]) -> None:
    """Assert everything that makes a Definition valid."""
    assert set(document) <= {
        *("name", "op_type", "axes", "inputs", "outputs", "reference"),
        *("tags", "description", "constraints"),
    }
    assert document["name"] and document["op_type"]
    for axis in document["axes"].values():
        assert axis["type"] == "var" or (axis["type"] == "const" and axis["value"] >= 0)
    tensors = {**document["inputs"], **document["outputs"]}
    assert len(tensors) == len(document["inputs"]) + len(document["outputs"]), "names overlap"
    for name, tensor in tensors.items():
        assert tensor["dtype"] in DTYPES, name
        assert set(tensor["shape"]) <= set(document["axes"]), name
    functions = [n for n in ast.parse(document["reference"]).body if isinstance(n, ast.FunctionDef)]
    (run,) = (function for function in functions if function.name == "run")
    assert [argument.arg for argument in run.args.args] == list(document["inputs"])
    bound = {axis for tensor in document["inputs"].values() for axis in tensor["shape"]}
    variable = {name for name, axis in document["axes"].items() if axis["type"] == "var"}
    assert variable <= bound, "a variable axis that no input has cannot be read"


def check_solution(document: dict[str, Any], definition: dict[str, Any]) -> None:
    """Assert everything that makes a Solution of `definition` valid."""
    spec = document["spec"]
    assert document["definition"] == definition["name"]
    assert document["name"] and document["author"]
    assert spec["language"] in LANGUAGES and spec["binding"] in ("tvm-ffi", "torch")
    assert spec["target_hardware"] and all(isinstance(w, str) for w in spec["target_hardware"])
    paths = [source["path"] for source in document["sources"]]
    assert len(set(paths)) == len(paths)
    for path in paths:
        assert not PurePosixPath(path).is_absolute() and ".." not in PurePosixPath(path).parts
    assert all(source["content"] for source in document["sources"])
    file, function = spec["entry_point"].split("::")
    assert file in paths
    entry = next(source["content"] for source in document["sources"] if source["path"] == file)
    assert f"TVM_FFI_DLL_EXPORT_TYPED_FUNC({function}, " in entry
    parameters = re.search(r"^void run\((.*?)\) \{", entry, re.MULTILINE | re.DOTALL)
    assert parameters is not None
    names = re.findall(r"TensorView (\w+)", parameters[1])
    assert names == [*definition["inputs"], *definition["outputs"]]


def check_workload_line(document: dict[str, Any], definition: dict[str, Any]) -> None:
    """Assert that a line of a workloads file is a Trace without a Solution."""
    assert document["definition"] == definition["name"]
    assert document["solution"] is None and document["evaluation"] is None
    workload = document["workload"]
    assert workload["uuid"]
    variable = {name for name, axis in definition["axes"].items() if axis["type"] == "var"}
    assert set(workload["axes"]) == variable
    assert set(workload["inputs"]) == set(definition["inputs"])
    for value in workload["inputs"].values():
        if value["type"] == "safetensors":
            assert not PurePosixPath(value["path"]).is_absolute() and value["tensor_key"]
        else:
            assert value == {"type": "random"}
