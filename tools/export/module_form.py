"""`--as torch --module`: an nn.Module with the original's state_dict, its forward the operator."""

from .file_text import filled
from .module_facts import module_facts
from .signature import Signature


def module_files(signature: Signature) -> dict[str, str | bytes]:
    """Return the files beside those of `--as torch`: the module, and its constants.

    Raises:
        ToolError: The problem was not imported from a module, or its call is not plain.
    """
    facts, name = module_facts(signature), signature.exported.name
    constants = facts.constant_files
    words = {**signature.words, "facts": facts, "constants": constants}
    files: dict[str, str | bytes] = {f"{name}/module.py": filled("torch_module.py", **words)}
    for one in constants:
        files[f"{name}/constants/{one.file}"] = one.path.read_bytes()
    return files
