"""Running nvdisasm on a cubin, in the sandbox; instructions in words, as an author reads them."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from kopt.config.errors import InfraError
from kopt.config.settings import Settings
from kopt.tools.sandbox.ladder import run_sandboxed
from kopt.tools.sandbox.policy import SandboxPolicy, compiler_memory_bytes

from .kept_output import kept_output
from .toolchain import FoundToolchain

_OUTPUT_LIMIT_BYTES = 256 << 20


def run_nvdisasm(
    cubin: bytes,
    toolchain: FoundToolchain,
    settings: Settings,
    options: tuple[str, ...] = ("-json",),
) -> str | None:
    """Return what nvdisasm prints, by default [metadata, functions] as JSON; None without it.

    Raises:
        InfraError: nvdisasm cannot read a cubin of its own toolkit.
    """
    nvdisasm = toolchain.nvdisasm
    if nvdisasm is None:
        return None
    made_from: list[str | bytes] = [str(nvdisasm), toolchain.version, *options, cubin]
    output = kept_output(made_from, lambda: _printed(cubin, nvdisasm, options, settings), settings)
    return None if output is None else output.decode()


def _printed(cubin: bytes, nvdisasm: Path, options: tuple[str, ...], settings: Settings) -> bytes:
    """Run nvdisasm on `cubin`, 0.35 s whatever it holds, and return what it prints."""
    with TemporaryDirectory(prefix="kopt-sass-") as scratch:
        path = Path(scratch) / "candidate.cubin"
        path.write_bytes(cubin)
        policy = SandboxPolicy(
            readable=(nvdisasm.parent,),
            writable=(path.parent,),
            output_bytes=_OUTPUT_LIMIT_BYTES,
            memory_bytes=compiler_memory_bytes(),
        )
        run = run_sandboxed([nvdisasm, *options, path.name], policy, settings)
    if run.returncode != 0 or run.timed_out or run.dropped_bytes:
        said = run.stderr.decode(errors="replace").strip()[-300:]
        raise InfraError(f"nvdisasm ended with {run.returncode} on a fresh cubin: {said}")
    return run.stdout


Listing = dict[str, tuple[str, ...]]
"""Instructions by kernel, in their order, without the NOPs that pad the end."""


def list_instructions(
    cubin: bytes, toolchain: FoundToolchain, settings: Settings
) -> Listing | None:
    """Return the instructions of every kernel in `cubin`; None where no nvdisasm is installed.

    What a kernel calls follows it. A predicate stands before the opcode, as in `@!P0 EXIT`.

    Raises:
        InfraError: nvdisasm cannot read a cubin of its own toolkit.
    """
    text = run_nvdisasm(cubin, toolchain, settings)
    return None if text is None else parse_listing(text)


def parse_listing(text: str) -> Listing:
    """Return the instructions in the output of `nvdisasm -json`."""
    _, kernels = read_output(text)
    return {name: tuple(map(_words, entries)) for name, entries in kernels.items()}


def read_output(text: str) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    """Return the metadata and, by kernel, the instructions of `nvdisasm -json`, without padding.

    Raises:
        ValueError: `text` is not its [metadata, functions].
    """
    metadata, functions = cast(tuple[Any, list[dict[str, Any]]], json.loads(text))
    kernels: dict[str, list[dict[str, Any]]] = {}
    name = ""
    for function in functions:
        if function["start"] == 0:  # what follows at other offsets is called by this one
            name = str(function["function-name"])
        kernels.setdefault(name, []).extend(function["sass-instructions"])
    for instructions in kernels.values():
        while instructions and instructions[-1]["opcode"] == "NOP":
            instructions.pop()
    return metadata, dict(sorted(kernels.items()))


def _words(entry: dict[str, Any]) -> str:
    parts = (entry.get("predicate", ""), entry["opcode"], entry.get("operands", ""))
    return " ".join(str(part).strip() for part in parts if part)
