"""The compiled parts that every simulated candidate shares: the runtime and the precompiled header.

Built once per g++ and per version of the sources, in KOPT_HOME/cache/sim, content-addressed and
put in place by one rename. Of several processes one builds and the others wait for it.
"""

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import as_file, files
from pathlib import Path

from kopt.config.callbacks import ignore
from kopt.config.errors import SetupError
from kopt.config.files import (
    content_hash,
    ensure_trusted_folder,
    staging_folder,
    sweep_abandoned,
)
from kopt.config.last_time import LastTime
from kopt.config.locks import key_lock
from kopt.config.sealed_folder import is_sealed, publish_sealed
from kopt.config.settings import Settings, without_secrets
from kopt.config.thread_pool import thread_pool
from kopt.tools.cuda.full_disk import refuse_full_disk
from kopt.tools.cuda.include_tree import cuda_include_folders
from kopt.tools.sandbox.ladder import run_sandboxed
from kopt.tools.sandbox.policy import SandboxPolicy, compiler_memory_bytes

# Beside the hooks: what lies beyond a local array, and signed overflow (runtime/undefined.cpp).
# no-tree-sra keeps vector loads whole, so that their width and alignment can be checked; the
# sanitizer's hooks are the simulator's own (runtime/access_hooks.cpp). DWARF 4: addr2line (2.40)
# takes the first file of a DWARF 5 table for another. Stack clash protection touches every page of
# a large frame, so that none skips the guard page below a fiber's stack. What is in .bss is taken
# for shared memory, which nothing initializes: a table of zeros must not get there.
CANDIDATE_FLAGS = (
    "-std=c++20",
    "-O1",
    "-g1",
    "-gdwarf-4",
    "-w",
    "-fsanitize=thread",
    "-fsanitize=object-size",
    "-fsanitize=signed-integer-overflow",
    "--param=tsan-distinguish-volatile=1",
    "-fno-tree-sra",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-gnu-unique",
    "-fno-stack-protector",
    "-fstack-clash-protection",
    "-fno-pic",
    "-no-pie",
    "-fcf-protection=none",
    "-fdata-sections",
    "-fno-zero-initialized-in-bss",
    "-fno-strict-aliasing",
    "-DKOPT_SIM=1",
)
# As nvcc does by default; g++ fuses among its expensive optimizations.
_CONTRACTED = ("-ffp-contract=fast", "-fexpensive-optimizations", "-mfma")
_NOT_CONTRACTED = ("-ffp-contract=off",)
_BUILD_S = 600.0
_RUNTIME_FLAGS = ("-std=c++17", "-O2", "-fno-pic", "-no-pie", "-fno-strict-aliasing", "-w")


@lru_cache
def candidate_flags() -> tuple[str, ...]:
    """Return g++'s flags for candidates: products and sums are fused where this CPU can fuse."""
    return CANDIDATE_FLAGS + (_CONTRACTED if cpu_fuses() else _NOT_CONTRACTED)


def cpu_fuses() -> bool:
    """Return whether this machine's CPU has a fused multiply-add (x86-64 since 2013)."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return False
    flags = next((line for line in text.splitlines() if line.startswith("flags")), "").split()
    return "fma" in flags and "avx" in flags


@dataclass(frozen=True)
class SimToolset:
    """Where the shared parts lie."""

    gxx: Path
    folder: Path
    """Holds runtime.o and include/kopt_sim/device.h with its .gch beside it."""
    digest: str
    """Changes with the sources, the flags, the compiler and the screens: part of every program's
    cache key."""

    @property
    def runtime_object(self) -> Path:
        """The runtime, compiled into one object."""
        return self.folder / "runtime.o"

    @property
    def include_folders(self) -> tuple[Path, ...]:
        """For -I, in this order: the simulator's headers stand before CUDA's of the same name."""
        return (self.folder / "include", *cuda_include_folders())


def find_toolset(settings: Settings, progress: Callable[[str], None] = ignore) -> SimToolset:
    """Return the toolset, building it if this g++ has not built it yet, which `progress` is told.

    Raises:
        SetupError: g++ is missing, cannot compile the runtime, or KOPT_HOME cannot be written.
    """
    toolset = _toolset_of(settings)
    ensure_trusted_folder(settings.sim_cache, settings.home)
    if not is_sealed(toolset.folder):
        with key_lock(settings.sim_cache / f"{toolset.folder.name}.lock", _BUILD_S):
            if not is_sealed(toolset.folder):
                last = LastTime("simulator", settings)
                progress(f"building the simulator, needed once{last.begin(1)}")
                _build(toolset.gxx, _source_files(), toolset.folder, settings)
                last.end()
    return toolset


@lru_cache
def _toolset_of(settings: Settings) -> SimToolset:
    """Return where the toolset of this g++ lies, or will lie."""
    located = shutil.which(settings.gxx)
    if located is None:
        raise SetupError(
            f"the simulator needs a C++ compiler and {settings.gxx!r} is not on PATH; "
            "install g++ or set KOPT_CXX"
        )
    digest = _digest(Path(located), _source_files())
    folder = ensure_trusted_folder(settings.sim_cache, settings.home) / f"toolset-{digest[:24]}"
    sweep_abandoned(settings.sim_cache)
    return SimToolset(Path(located), folder, content_hash([digest, _screens()]))


def _source_files() -> dict[str, bytes]:
    """Return runtime/ and include/ of this package, by relative path."""
    found: dict[str, bytes] = {}
    with as_file(files("kopt.tools.sim")) as root:
        for part in ("runtime", "include"):
            for path in sorted((root / part).rglob("*")):
                if path.is_file():
                    found[str(path.relative_to(root))] = path.read_bytes()
    return found


def _screens() -> bytes:
    """Return what decides whether a program is kept: stricter screens must see it again."""
    with as_file(files("kopt.tools.sim")) as root:
        return b"".join(path.read_bytes() for path in sorted(root.glob("*.py")))


def _digest(gxx: Path, sources: dict[str, bytes]) -> str:
    asked = subprocess.run([gxx, "-v"], capture_output=True, check=False, env=without_secrets())
    options = repr((candidate_flags(), _RUNTIME_FLAGS, cuda_include_folders()))
    return content_hash([asked.stderr, options, *(part for one in sources.items() for part in one)])


@dataclass(frozen=True)
class _Build:
    """One build of the toolset in `work`."""

    gxx: Path
    work: Path
    settings: Settings

    def run_all(self) -> None:
        """Compile the runtime and the precompiled header side by side.

        The runtime's files are one unit: most of the time of each would go into the same headers.
        """
        names = sorted(path.name for path in (self.work / "runtime").glob("*.cpp"))
        (self.work / "runtime.cpp").write_text("".join(f'#include "{name}"\n' for name in names))
        header = self.work / "include" / "kopt_sim" / "device.h"
        includes = (self.work / "include", *cuda_include_folders())
        commands = [[*candidate_flags(), *(f"-I{path}" for path in includes)]]
        commands[0] += ["-x", "c++-header", str(header), "-o", f"{header}.gch"]
        commands += [[*_RUNTIME_FLAGS, "-Iruntime", "-c", "runtime.cpp", "-o", "runtime.o"]]
        with thread_pool(self.settings.jobs, "toolset") as pool:
            for _ in pool.map(self._gxx, commands):
                pass
        (self.work / "runtime.cpp").unlink()
        for name in ("runtime", "home", "tmp"):  # sources, and the sandbox's own folders
            shutil.rmtree(self.work / name, ignore_errors=True)

    def _gxx(self, arguments: list[str]) -> None:
        policy = SandboxPolicy(
            readable=cuda_include_folders(),
            writable=(self.work,),
            wall_s=_BUILD_S,
            memory_bytes=compiler_memory_bytes(),
        )
        done = run_sandboxed([self.gxx, *arguments], policy, self.settings)
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip()
            refuse_full_disk(said, self.work.parent)
            raise SetupError(
                f"{self.gxx} cannot compile the simulator's runtime: "
                f"{' | '.join(said.splitlines()[:3])}; "
                "it needs a g++ with C++20 and -fsanitize=thread (11 or later)"
            )


def _build(gxx: Path, sources: dict[str, bytes], folder: Path, settings: Settings) -> None:
    with staging_folder(folder) as work:
        for name, data in sources.items():
            path = work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        _Build(gxx, work, settings).run_all()
        publish_sealed(work, folder, durable=True)
