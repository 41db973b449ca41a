"""What a kernel's source may not bring into an export: code that the host runs by itself.

kopt loads cubins, so that nothing of a candidate ever runs on the host. An export is compiled for
the host too, and a file that says `static int x = run();` runs it when the library is loaded. The
source is screened as for kopt's own builds, then compiled as the export will be, in the sandbox,
and its objects are read: nvcc's own registration is all that may run before `main`.
"""

import io
import tempfile
from collections.abc import Callable
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from kopt.config.callbacks import ignore
from kopt.config.errors import ToolError
from kopt.config.files import ensure_folder
from kopt.config.settings import Settings
from kopt.config.time_left import TimeLeft
from kopt.kernels.source_screen import screen_source
from kopt.tools.cuda.nvcc import readable_folders
from kopt.tools.cuda.toolchain import FoundToolchain, find_toolchain
from kopt.tools.sandbox.ladder import run_sandboxed
from kopt.tools.sandbox.policy import SandboxPolicy, compiler_memory_bytes

from .device_code import device_code
from .exported_kernel import ExportedKernel, nvcc_flags
from .folder_files import source_files
from .routes import plan_routes
from .signature import Signature

_WALL_S = 120.0
_LOG_BYTES = 1 << 20
_OBJECT_BYTES = 64 << 20
_STARTERS = (".init", ".fini", ".ctors", ".dtors", ".preinit")
_REGISTRATION = (".init_array", 8)
"""Section and bytes of the one constructor that nvcc adds to a file with kernels."""


def refuse_host_code(
    exported: ExportedKernel, settings: Settings, progress: Callable[[str], None] = ignore
) -> None:
    """Refuse a source that kopt's builds refuse, or whose export would run host code by itself.

    `progress` is told which of the builds is compiled.

    Raises:
        ToolError: It is refused, or an export of it does not compile.
        SetupError: There is no nvcc or no host compiler, or no sandbox.
        InfraError: The sandbox was killed from outside.
    """
    name = exported.candidate.name
    for found in screen_source(exported.candidate):
        if found.severity == "error":
            raise ToolError(f"{name} cannot be exported: line {found.line}: {found.message}")
    toolchain = find_toolchain(settings)
    code = device_code(exported.candidate.source)
    routes = plan_routes(exported)
    texts = source_files(Signature(exported, code.alignment_bytes), routes, code)
    parent = ensure_folder(settings.cubin_cache.absolute() / "work")
    with tempfile.TemporaryDirectory(dir=parent, prefix="export-") as scratch:
        work = Path(scratch)
        for path, text in texts.items():
            (work / path).parent.mkdir(exist_ok=True)
            (work / path).write_text(text, "utf-8")
        pace = TimeLeft(len(routes))
        for number, route in enumerate(routes, start=1):
            place = f"{pace.place(number)} builds"
            progress(f"compiling {place}, to look at their host code{pace.left(number)}")
            reason = _runs_by_itself(
                _compiled(work, f"{exported.name}_{route.tag}.cu", (exported, toolchain), settings)
            )
            if reason is not None:
                raise ToolError(f"{name} cannot be exported: {reason}")


def _compiled(
    work: Path, file: str, made_by: tuple[ExportedKernel, FoundToolchain], settings: Settings
) -> bytes:
    exported, toolchain = made_by
    number = exported.arch.removeprefix("sm_")
    command: list[str | Path] = [toolchain.nvcc, *nvcc_flags(exported), "-ccbin", toolchain.gxx]
    # PTX is enough: what is read here is the host's half.
    command += [f"-gencode=arch=compute_{number},code=compute_{number}", "-c", "-o", "object", file]
    policy = SandboxPolicy(
        readable=readable_folders(toolchain, settings),
        writable=(work,),
        wall_s=_WALL_S,
        output_bytes=_LOG_BYTES,
        file_bytes=_OBJECT_BYTES,
        memory_bytes=compiler_memory_bytes(),
    )
    (work / "object").unlink(missing_ok=True)
    run = run_sandboxed(command, policy, settings)
    if run.returncode != 0 or run.timed_out or not (work / "object").is_file():
        log = (run.stdout + run.stderr).decode(errors="replace").strip() or "no word of why"
        raise ToolError(f"an export of {exported.candidate.name} does not compile: {log[:600]}")
    return (work / "object").read_bytes()


def _runs_by_itself(content: bytes) -> str | None:
    """Return what of an object the host would run by itself; None if nothing."""
    elf = ELFFile(io.BytesIO(content))
    for section in elf.iter_sections():
        name = str(section.name)
        if name.startswith(_STARTERS) and (name, section.data_size) != _REGISTRATION:
            return (
                "it has host code that runs when a library with it is loaded (a variable outside of"
                " any kernel whose value is computed); make the value constexpr, or leave it out"
            )
    table = elf.get_section_by_name(".symtab")
    symbols = table.iter_symbols() if isinstance(table, SymbolTableSection) else ()
    if any(symbol["st_info"]["type"] == "STT_LOOS" for symbol in symbols):  # GNU: indirect function
        return "it has a host function that is chosen by code while a library is loaded"
    return None
