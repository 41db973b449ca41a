"""The text of `kopt://gpus/{name}`: the data sheet of a GPU, with what follows from it."""

from kopt.config.errors import ToolError
from kopt.config.gpu_specs import load_gpus
from kopt.tools.facts.gpu_facts import gpu_facts
from kopt.tools.facts.rendering import render

from .refusal import nearest, shown


def gpu_document(name: str) -> str:
    """Return the data sheet of the GPU `name`, in any case of letters.

    Raises:
        ToolError: There is none; the message has those that there are.
    """
    gpu = load_gpus().get(name.upper())
    if gpu is None:
        raise ToolError(f"no data sheet for {shown(name)}: {nearest(name.upper(), load_gpus())}")
    return render(gpu_facts(gpu)) + "\n"
