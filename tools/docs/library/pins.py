"""The libraries that kopt knows by name, and the versions of them that it obtains (pins.yaml).

Keys, licences and weights stand here: a filter must know them before anything was obtained.
"""

from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from typing import Self

import yaml
from pydantic import model_validator

from kopt.kernels.record import Record
from kopt.tools.docs.sources import PROPRIETARY, LibrarySource


def _known(key: str, license_id: str, quality: float, holds: str) -> LibrarySource:
    return LibrarySource(key, None, license_id, quality, holds)


_LIBRARIES = (
    _known(
        "flashinfer",
        "Apache-2.0",
        1.0,
        "FlashInfer: attention, MoE, GEMM, norm, quantization and communication for inference.",
    ),
    _known(
        "cutlass",
        "BSD-3-Clause",
        0.95,
        "CUTLASS and CuTe: GEMM building blocks, copies, MMA, pipelines, complete examples.",
    ),
    _known(
        "vllm",
        "Apache-2.0",
        1.0,
        "vLLM: paged attention, quantization, MoE, norms, activations; CUDA and Triton.",
    ),
    _known(
        "sglang",
        "Apache-2.0",
        1.0,
        "SGLang: JIT CUDA kernels and Triton kernels of its serving runtime.",
    ),
    _known(
        "torch",
        "BSD-3-Clause",
        0.9,
        "PyTorch's CUDA headers: reductions, vectorized access, atomics, block idioms.",
    ),
    _known(
        "cuda",
        PROPRIETARY,
        1.0,
        "CUDA's documented fp4, fp6, fp8, fp16 and bf16 intrinsics.",
    ),
    _known("liger", "BSD-2-Clause", 0.9, "Liger: Triton kernels for training LLMs."),
    _known(
        "quack",
        "Apache-2.0",
        0.9,
        "QuACK: memory-bound and GEMM kernels in CuTe DSL for Hopper and Blackwell.",
    ),
    _known("flash_attn", "BSD-3-Clause", 0.9, "FlashAttention 4: attention in CuTe DSL."),
    _known("apex", "BSD-3-Clause", 0.9, "Apex: fused norms, optimizers, softmax, multi-tensor."),
    _known("lmdeploy", "Apache-2.0", 0.85, "LMDeploy: TurboMind's CUDA kernels, Triton kernels."),
    _known("triton", "MIT", 0.95, "Triton: its kernel collection and its standard library."),
)
KNOWN_LIBRARIES = {library.key: library for library in _LIBRARIES}
"""Every key that a filter may name beside the user's own, obtained or not, without version."""


def known_source(key: str, version: str | None) -> LibrarySource:
    """Return the library `key` of KNOWN_LIBRARIES in the version that was obtained."""
    return replace(KNOWN_LIBRARIES[key], version=version)


class MemberRule(Record):
    """Which members of an archive belong to the source, and what their paths are inside it."""

    under: str
    """Beginning of the member's name; "" for all."""
    strip: str = ""
    """Cut off the name's beginning."""
    suffix: str = ""
    """End of the member's name."""
    but_not: str | None = None
    """Beginning of names that the rule does not take."""

    def path_of(self, name: str) -> str | None:
        """Return the path inside the source; None if the rule does not take `name`."""
        if not (name.startswith(self.under) and name.endswith(self.suffix)):
            return None
        if self.but_not is not None and name.startswith(self.but_not):
            return None
        return name.removeprefix(self.strip)


Rules = tuple[MemberRule, ...]


def path_by(rules: Rules, name: str) -> str | None:
    """Return the path inside the source by the first rule that takes `name`; None by none."""
    paths = (rule.path_of(name) for rule in rules)
    return next((path for path in paths if path is not None), None)


class InstalledPackage(Record):
    """A package whose sources may be installed here."""

    project: str
    """Name in the package index."""
    members: Rules


class PackagePin(InstalledPackage):
    """One file of the package index, by its hash."""

    version: str
    filename: str
    sha256: str | None = None
    """Hash of the whole file; None where only its members are fetched."""
    members_sha256: str | None = None
    """Hash of the selected members, as `members_digest` takes it, where `sha256` is None."""
    size_bytes: int
    is_default: bool
    """Obtained unless other sources are asked for."""
    prefer_installed: bool = False
    """Any installed version serves as well: its paths do not move between versions."""

    @model_validator(mode="after")
    def _has_one_hash(self) -> Self:
        if (self.sha256 is None) == (self.members_sha256 is None):
            raise ValueError("a pin has either sha256 or members_sha256")
        return self


class Repository(Record):
    """A git repository of a source."""

    url: str
    members: Rules


class Pins(Record):
    """The content of pins.yaml, by source."""

    packages: dict[str, PackagePin]
    installed: dict[str, InstalledPackage]
    """Beside the packages: those whose files are not worth a download."""
    repositories: dict[str, tuple[Repository, ...]]


@lru_cache
def pins() -> Pins:
    """Return what is pinned."""
    text = files("kopt.tools.docs.library").joinpath("pins.yaml").read_text("utf-8")
    return Pins.model_validate(yaml.safe_load(text))


def default_keys() -> tuple[str, ...]:
    """Return the sources that are obtained where none is named."""
    return tuple(key for key, pin in pins().packages.items() if pin.is_default)
