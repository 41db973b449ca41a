"""Which environment variables CUDA, torch and FlashInfer get to see in the processes using them."""

from collections.abc import Mapping

from .secret_marks import looks_secret

LIBRARY_VARIABLES = (
    "CC",
    "CPATH",
    "CUDAHOSTCXX",
    "CXX",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "MAX_JOBS",
    "NVCC_APPEND_FLAGS",
    "NVCC_PREPEND_FLAGS",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_TF32_OVERRIDE",
    "NVIDIA_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
    "PATH",
    "TORCH_CUDA_ARCH_LIST",
)
LIBRARY_PREFIXES = ("CUDA_", "CUTE_DSL_", "FLASHINFER_")
_FOLDER_WORDS = ("CACHE", "DUMP")


def library_environment(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return what libraries may see of `environment`: no secret and no folder to write."""
    return tuple(
        (name, value)
        for name, value in sorted(environment.items())
        if (name in LIBRARY_VARIABLES or name.startswith(LIBRARY_PREFIXES))
        and not any(word in name for word in _FOLDER_WORDS)
        and not looks_secret(name, value)
    )
