"""What nvcc makes of an export: the machine code that kopt itself built and checked."""

import io
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from kopt.config.settings import Settings
from kopt.kernels.case import Case
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.cuda.toolchain import FoundToolchain
from kopt.tools.export.exported_kernel import gencode, nvcc_flags
from kopt.tools.export.stage import export
from support.exports import exported_sample

pytestmark = pytest.mark.slow  # compiles exports


def machine_code(cubin: Path) -> tuple[bytes, ...]:
    """Return the code of every kernel of a cubin, whatever the kernels are called."""
    elf = ELFFile(io.BytesIO(cubin.read_bytes()))
    return tuple(sorted(s.data() for s in elf.iter_sections() if s.name.startswith(".text.")))


def built(sources: Sequence[Path], words: Sequence[str], folder: Path) -> list[tuple[bytes, ...]]:
    """Compile `sources` to objects and return the machine code in each."""
    found: list[tuple[bytes, ...]] = []
    for number, source in enumerate(sources):
        kept = folder / str(number)
        kept.mkdir(parents=True)
        command = [
            *words,
            "-keep",
            "-keep-dir",
            str(kept),
            "-c",
            "-o",
            str(kept / "o"),
            str(source),
        ]
        done = subprocess.run(command, capture_output=True, text=True, cwd=kept)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), source
        found += [machine_code(cubin) for cubin in kept.glob("*.cubin")]
    return found


# Cooperative launch and scratch; two launches, a tensor map and scratch; variants by shape.
@pytest.mark.parametrize(
    "name", ["good_cooperative_grid_sync", "good_tma_scratch", "good_variants_by_shape"]
)
def test_builds_of_an_export_hold_the_machine_code_that_was_checked(
    name: str, tmp_path: Path, settings: Settings, toolchain: FoundToolchain
) -> None:
    exported = exported_sample(name)
    request = CompileRequest(
        Case(exported.problem, exported.domain[0], exported.candidate), ("sm_90a",)
    )
    builds = compile_candidate(request, settings).builds
    export(exported, "cuda", tmp_path / "export")
    # Their own namespaces in front of them: routes only, the dispatch has no kernel.
    sources = sorted((tmp_path / "export" / "src").glob(f"{exported.name}_*.cu"))
    words = [str(toolchain.nvcc), "-ccbin", str(toolchain.gxx), *nvcc_flags(exported)]
    words += [gencode(exported), "-Werror", "all-warnings"]
    machine_codes = built(sources, words, tmp_path / "kept")
    assert sorted(machine_codes) == sorted(machine_code(Path(build.cubin_path)) for build in builds)
