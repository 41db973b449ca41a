"""Running nvdisasm on a cubin, in the sandbox: its JSON is read elsewhere."""

from pathlib import Path
from tempfile import TemporaryDirectory

from kopt.config.errors import InfraError
from kopt.config.settings import Settings
from kopt.tools.sandbox.ladder import run_sandboxed
from kopt.tools.sandbox.policy import SandboxPolicy

from .toolchain import FoundToolchain

_OUTPUT_LIMIT_BYTES = 256 << 20


def run_nvdisasm(cubin: bytes, toolchain: FoundToolchain, settings: Settings) -> str | None:
    """Return the output of `nvdisasm -json`, [metadata, functions]; None where it is not installed.

    Raises:
        InfraError: nvdisasm cannot read a cubin of its own toolkit.
    """
    if toolchain.nvdisasm is None:
        return None
    with TemporaryDirectory(prefix="kopt-sass-") as scratch:
        path = Path(scratch) / "candidate.cubin"
        path.write_bytes(cubin)
        policy = SandboxPolicy(
            readable=(toolchain.nvdisasm.parent,),
            writable=(path.parent,),
            output_bytes=_OUTPUT_LIMIT_BYTES,
        )
        run = run_sandboxed([toolchain.nvdisasm, "-json", path.name], policy, settings)
    if run.returncode != 0 or run.timed_out or run.dropped_bytes:
        said = run.stderr.decode(errors="replace").strip()[-300:]
        raise InfraError(f"nvdisasm ended with {run.returncode} on a fresh cubin: {said}")
    return run.stdout.decode()
