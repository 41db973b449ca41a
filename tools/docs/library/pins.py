"""The libraries that kopt knows by name: what is in them, under which licence, with which weight."""

from dataclasses import replace

from .source_file import LibrarySource

_EULA = "LicenseRef-NVIDIA-Proprietary"
"""CUDA's headers: indexed on this machine, never handed on."""


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
        _EULA,
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
