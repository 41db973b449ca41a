"""Building the CPU program of a candidate: g++, the object screen, red zones, the linker.

The program is kept by content under KOPT_HOME/cache/sim, shared by any number of processes; what it
needs to be run (entries, shared variables) lies beside it as JSON.
"""

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile

from kopt.config.callbacks import ignore
from kopt.config.errors import InfraError
from kopt.config.files import (
    content_hash,
    ensure_trusted_folder,
    evict_least_used,
    remove_folder,
    staging_folder,
)
from kopt.config.sealed_folder import is_sealed, publish_sealed
from kopt.config.settings import Settings
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status
from kopt.tools.cuda.full_disk import refuse_full_disk
from kopt.tools.cuda.include_tree import include_root
from kopt.tools.devices.device import Program
from kopt.tools.sandbox.ladder import run_sandboxed
from kopt.tools.sandbox.policy import (
    SandboxedRun,
    SandboxPolicy,
    compiler_memory_bytes,
    out_of_memory_words,
)

from .branches import choose_branches
from .object_screen import (
    DUMP_FLAG,
    STORING_LIBM,
    dynamic_shared_symbols,
    inline_assembly_line,
    narrowest_access,
    screen_object,
    unhooked_line,
)
from .program_facts import SimProgram, read_program_facts
from .ptx_advice import header_refusal
from .refusals import explain_assembly, parse_messages, unsupported
from .toolset import SimToolset, candidate_flags, find_toolset
from .unit import dynamic_shared_names, make_unit, module_variables

KEPT_PROGRAMS = 1024
"""Programs not used for longest are removed beyond this number. Each takes 0.3 MiB; the samples of
the self-test alone, read again in the same order, would push out each other at fewer than them."""
_COMPILE_S = 60.0
_RED_ZONE_BYTES = 256
"""Gap behind each static shared variable, so that an overrun is not the next variable."""
_BSS_VARIABLE = re.compile(
    r"(^\s*\.section\s+\.bss\.[^\n]*\n(?:(?!\s*\.section)[^\n]*\n)*?\s*\.zero\s+\d+\n)",
    re.MULTILINE,
)
# All that a candidate defines stays its own: it must not take the place of a function of the
# runtime, or of the C library that the runtime calls.
_EXPORTED_NAME = re.compile(
    r"^\s*\.(?:globl|global|weak)\s+(?!kopt_sim_entry_\d+\s*$).*\n", re.MULTILINE
)


@dataclass(frozen=True)
class BuildFailure:
    """Why there is no program; a fact about the candidate."""

    status: Status
    diagnostics: tuple[Diagnostic, ...]


def build_program(
    program: Program, settings: Settings, progress: Callable[[str], None] = ignore
) -> SimProgram | BuildFailure:
    """Return the CPU program for `program.plan`, from the cache or built now (about 0.3 s).

    `progress` is told where the simulator itself has to be built first.

    Raises:
        SetupError: No usable g++, or KOPT_HOME cannot be written; its disk may be full.
    """
    toolset = find_toolset(settings, progress)
    kernels = tuple(dict.fromkeys(launch.kernel for launch in program.plan.launches))
    chosen = choose_branches(program, settings)
    if chosen.refusal is not None:
        return BuildFailure(Status.UNSUPPORTED_ON_SIM, (chosen.refusal,))
    unit = make_unit(chosen, program.plan.defines, kernels)
    headers = include_root(settings)
    key = content_hash([toolset.digest, headers.name, unit])
    programs = ensure_trusted_folder(settings.sim_cache / "programs", settings.home)
    folder = programs / key
    kept = find_kept(folder)
    if kept is not None:
        return kept
    with staging_folder(folder) as work:
        (work / "unit.cpp").write_text(unit, "utf-8")
        builder = _Builder(toolset, headers, work, settings)
        result = builder.build(program.candidate.source, kernels, folder)
        if isinstance(result, SimProgram):
            keep(work, folder)
    evict_least_used(programs, KEPT_PROGRAMS)
    return result


@dataclass(frozen=True)
class _Builder:
    """One build in `work`; the steps share these four."""

    toolset: SimToolset
    headers: Path
    work: Path
    settings: Settings

    def build(
        self, source: str, kernels: tuple[str, ...], folder: Path
    ) -> SimProgram | BuildFailure:
        flags = [*candidate_flags(), DUMP_FLAG, "-fstack-usage", "-include", "kopt_sim/device.h"]
        compiled = self._gxx(flags, "unit.cpp", "-S")
        refused = self._refused(compiled, source)
        if refused:
            return _failed(*refused)
        assembly = self.work / "unit.s"
        text = assembly.read_text("utf-8")
        text = _BSS_VARIABLE.sub(rf"\1\t.zero {_RED_ZONE_BYTES}\n", text)
        assembly.write_text(_EXPORTED_NAME.sub("", text), "utf-8")
        assembled = self._gxx([], "unit.s", "-c")
        if assembled.returncode != 0 and b"unit.s:" in assembled.stderr:
            return _failed(unsupported("it gives something a name that cannot be assembled"))
        self._checked(assembled)
        with (self.work / "unit.o").open("rb") as stream:
            elf = ELFFile(stream)
            dynamic = dynamic_shared_symbols(elf, dynamic_shared_names(source))
            refusal = screen_object(elf, dynamic)
            narrowest = narrowest_access(elf)
        if refusal is not None:
            return _failed(header_refusal(source) or unsupported(refusal))
        self._checked(self._link(dynamic))
        facts = read_program_facts(self.work / "unit.o", self.work / "program", kernels)
        for name, line in module_variables(source).items():
            # It has storage like shared memory's: the runtime would take it for that.
            if any(variable.name == name for variable in facts.shared):
                reason = f"`{name}` keeps its value between launches: declare scratch instead"
                return _failed(unsupported(reason, line))
        result = SimProgram(
            executable=str(folder / "program"),
            sandbox=compiled.level,
            narrowest_access_bytes=narrowest,
            stack_bytes=_stack_bytes((self.work / "unit.su").read_text("utf-8")),
            **dict(facts),
        )
        (self.work / "program.json").write_text(result.model_dump_json(), "utf-8")
        return result

    def _refused(self, compiled: SandboxedRun, source: str) -> tuple[Diagnostic, ...]:
        """Return why the assembly that g++ has made, or has not, is no program."""
        if compiled.timed_out:
            return (unsupported(f"g++ did not finish within {_COMPILE_S:.0f} s"),)
        if compiled.returncode != 0:
            told = compiled.stderr.decode(errors="replace")
            words = out_of_memory_words(told)
            return parse_messages(told, source) if words is None else (unsupported(words),)
        found = inline_assembly_line((self.work / "unit.s").read_text("utf-8"))
        if found is not None:
            return (explain_assembly(source, found),)
        line = unhooked_line((self.work / "unit.tsan").read_text("utf-8"))
        if line is None:
            return ()
        return (unsupported("a call that is not inlined takes a struct from memory", line),)

    def _gxx(self, flags: list[str], unit: str, mode: str) -> SandboxedRun:
        includes = [self.toolset.folder / "include", self.headers]
        includes += self.toolset.include_folders[1:]
        command: list[str | Path] = [self.toolset.gxx, *flags]
        return self._run([*command, *(f"-I{path}" for path in includes), mode, unit])

    def _link(self, dynamic: tuple[str, ...]) -> SandboxedRun:
        command: list[str | Path] = [self.toolset.gxx, "-no-pie", "-Wl,--emit-relocs", "unit.o"]
        command += [self.toolset.runtime_object, "-o", "program"]
        command += [f"-Wl,--defsym={symbol}=kopt_sim_dynamic_shared" for symbol in dynamic]
        command += [f"-Wl,--wrap={name}" for name in STORING_LIBM]
        return self._run(command)

    def _run(self, command: list[str | Path]) -> SandboxedRun:
        policy = SandboxPolicy(
            readable=(self.toolset.folder, self.headers, *self.toolset.include_folders),
            writable=(self.work,),
            wall_s=_COMPILE_S,
            memory_bytes=compiler_memory_bytes(),
        )
        run = run_sandboxed(command, policy, self.settings)
        if run.returncode != 0:
            refuse_full_disk(run.stderr.decode(errors="replace"), self.work.parent)
        return run

    def _checked(self, run: SandboxedRun) -> None:
        """The candidate compiled: what fails after that is the machine's doing."""
        if run.returncode != 0:
            text = run.stderr.decode(errors="replace")[:500]
            raise InfraError(f"the simulator's program could not be linked: {text}")


def _stack_bytes(usage: str) -> int:
    """Return the sum of g++'s lines `file:line:column:function<TAB>bytes<TAB>kind`."""
    return sum(int(line.split("\t")[1]) for line in usage.splitlines())


def find_kept(folder: Path) -> SimProgram | None:
    """Return the program in `folder` if it is whole; what is left of a broken one is removed."""
    if not is_sealed(folder):
        return None
    try:
        program = SimProgram.model_validate_json((folder / "program.json").read_bytes())
        os.utime(folder / "program")
        os.utime(folder)
    except (OSError, ValueError):  # removed or damaged since this process first read it
        remove_folder(folder)
        return None
    return program


def keep(work: Path, folder: Path) -> None:
    """Put a finished build in place; another process may have been quicker."""
    for name in ("unit.cpp", "unit.s", "unit.o", "unit.tsan", "unit.su"):
        (work / name).unlink(missing_ok=True)
    for scratch in ("home", "tmp"):  # the sandbox's
        shutil.rmtree(work / scratch, ignore_errors=True)
    publish_sealed(work, folder)


def _failed(*diagnostics: Diagnostic) -> BuildFailure:
    return BuildFailure(Status.UNSUPPORTED_ON_SIM, diagnostics)
