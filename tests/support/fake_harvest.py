"""A library of a few kernels written for the tests, as if it had just been obtained.

Builds read it instead of the pinned archives: `FakeHarvest.build` puts it there.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from unittest.mock import patch

from kopt.config.settings import Settings
from kopt.tools.docs.build_records import BuildProgress, BuildResult, SkippedSource
from kopt.tools.docs.library.harvest import FileSelection, Harvested
from kopt.tools.docs.library_index.build import build_library
from kopt.tools.docs.sources import LibrarySource, SourceFile

ALPHA = LibrarySource("alpha", "1.2", "Apache-2.0", 1.0, "Kernels for tests.")
BETA = LibrarySource("beta", "3.4", "BSD-3-Clause", 0.9, "More of them.")


def kernel(name: str, does: str = "scales a row of walrus values") -> str:
    """Return a file with one kernel and a device function of its own."""
    return f"""#include <cuda_runtime.h>

// {name} {does} in shared memory.
// One warp owns a row.
template <int kThreads>
__global__ void {name}_kernel(const float* input, float* output, int columns) {{
  extern __shared__ float tile[];
  for (int column = threadIdx.x; column < columns; column += kThreads) {{
    tile[column] = input[blockIdx.x * columns + column];
  }}
  __syncthreads();
  for (int column = threadIdx.x; column < columns; column += kThreads) {{
    output[blockIdx.x * columns + column] = tile[column] * {len(name)}.0f;
  }}
}}
"""


@dataclass
class FakeHarvest:
    """What a harvest gives; tests change it between builds."""

    files: dict[LibrarySource, dict[str, str]] = field(
        default_factory=dict[LibrarySource, dict[str, str]]
    )
    missing: dict[str, str] = field(default_factory=dict[str, str])
    """Keys of sources that cannot be had, with the reason."""

    def harvest(
        self,
        selection: FileSelection,
        settings: Settings,
        on_progress: Callable[[BuildProgress], None],
    ) -> Iterator[Harvested | SkippedSource]:
        """Yield what the real one would."""
        del selection, settings
        for source, files in self.files.items():
            on_progress(BuildProgress("download", source.key, 0, None))
            if source.key in self.missing:
                yield SkippedSource(source=source.key, reason=self.missing[source.key])
            else:
                yield Harvested(source, _source_files(source, files))

    def build(
        self,
        settings: Settings,
        on_progress: Callable[[BuildProgress], None] = lambda _progress: None,
        fresh: bool = False,
    ) -> BuildResult:
        """Build the library index out of it."""
        with patch("kopt.tools.docs.library_index.build.harvest", self.harvest):
            return build_library(FileSelection(fresh=fresh), settings, on_progress)


def fake_harvest(alpha: int = 2, beta: int = 1) -> FakeHarvest:
    """Return a harvest with so many files in each source."""
    return FakeHarvest(
        {
            ALPHA: {f"csrc/alpha{n}.cu": kernel(f"alpha{_letters(n)}") for n in range(alpha)},
            BETA: {f"src/beta{n}.cu": kernel(f"beta{_letters(n)}") for n in range(beta)},
        }
    )


def _letters(number: int) -> str:
    """Return a word for a number: digits alone would make the files near-duplicates."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def _source_files(source: LibrarySource, files: Mapping[str, str]) -> tuple[SourceFile, ...]:
    return tuple(SourceFile(source, path, text.encode()) for path, text in files.items())
