"""`--as kernelbench`: one file with ModelNew, as KernelBench's evaluator takes a solution.

Its constructor is that of the task's Model, without what Model computes; its forward calls the
kernel, which load_inline compiles from a text. Source: KernelBench's src/kernelbench/eval.py.
"""

from collections.abc import Mapping

from kopt.config.errors import ToolError
from kopt.kernels.problem import TensorSpec

from .exported_kernel import flags_without_standard, gencode
from .file_text import filled
from .model_structure import model_structure
from .module_facts import CONSTANT_BYTES, ModuleFacts, module_facts
from .one_source import one_source
from .routes import Route
from .signature import Signature
from .type_names import TORCH_DTYPES

FILE = "model_new.py"
_BINDING = "binding.cu"


def kernelbench_files(
    signature: Signature, routes: tuple[Route, ...], sources: Mapping[str, str]
) -> dict[str, str]:
    """Return the file with ModelNew and what the test calls.

    Raises:
        ToolError: The problem was not imported from a file with Model, or its constants are large.
    """
    facts = module_facts(signature)
    _refuse_other(facts)
    imports, body = model_structure(facts.model_text or "")
    tensors, name = signature.exported.problem.tensors, signature.exported.name
    parameters = signature.cpp_parameters("const at::Tensor&", tensors)
    words = {
        **signature.words,
        "facts": facts,
        "constants": facts.constant_files,
        "imports": [one for one in imports if not one.startswith("from __future__")],
        "casts": {one.name: _cast(one) for one in signature.inputs},
        "body": body,
        "parameters": parameters,
        "dtypes": TORCH_DTYPES,
        "flags": (*flags_without_standard(signature.exported), gencode(signature.exported)),
    }
    texts = {**sources, _BINDING: filled("inline_binding.cu", **words)}
    order = (f"{name}.cu", *(f"{name}_{route.tag}.cu" for route in routes), _BINDING)
    text = one_source(texts, order, f"{name}_device.cuh")
    if '"""' in text or text.endswith("\\"):
        raise ToolError("the source holds three quotes in a row, which no Python text can")
    return {
        FILE: filled("model_new.py", cuda=text, **words),
        "test/call.py": filled("call_kernelbench.py", **words),
    }


def _cast(tensor: TensorSpec) -> str:
    """Return the call that undoes the evaluator's conversion of whole numbers to floats."""
    is_float = tensor.dtype.startswith(("float", "bfloat"))
    return "" if is_float else f".to(torch.{tensor.dtype})"


def _refuse_other(facts: ModuleFacts) -> None:
    asked, name = facts.imported.export, facts.signature.exported.name
    if facts.model_text is None or asked.entry not in (None, "Model"):
        raise ToolError(
            f"{name} was not imported from a file with a class Model, as a task of KernelBench is:"
            " export it --as torch --module"
        )
    if asked.dtype is not None or asked.mode != "as-is":
        raise ToolError(
            f"{name} was imported with another dtype or mode than its file has: ModelNew would be"
            " compared with another function"
        )
    size = sum(one.path.stat().st_size for one in facts.constant_files)
    if size > CONSTANT_BYTES:
        raise ToolError(
            f"the constants of {name} take {size} bytes, and one file may hold {CONSTANT_BYTES}:"
            " export it --as torch --module"
        )
