"""Include folders of a compile: kopt's own headers by content, CUDA's header wheels by place.

Candidates write `#include <kopt/nvfp4_utils.cuh>`. The headers are copied once into a folder that
is named by their content, so that a cubin of an older kopt is never taken for one of this kopt.
"""

import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, requires
from importlib.resources import files
from pathlib import Path

from kopt.config.errors import SetupError
from kopt.config.files import content_hash, ensure_folder, staging_folder, sweep_abandoned
from kopt.config.sealed_folder import is_sealed, publish_sealed
from kopt.config.settings import Settings

from .toolchain import pip_toolkit_root

_OF_WHEELS = {
    "nvidia-cuda-runtime": "include/cuda_bf16.h",
    "nvidia-cuda-crt": "include/crt/host_config.h",
    "nvidia-cuda-cccl": "include/cccl/nv/target",
}
"""A header of each wheel. Other packages, PyTorch among them, bring only the first of these."""


@lru_cache
def kopt_headers() -> Mapping[str, bytes]:
    """Return kernels/common/*.cuh by file name: what `<kopt/...>` can name."""
    folder = files("kopt.kernels").joinpath("common")
    return {
        entry.name: entry.read_bytes()
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".cuh")
    }


@lru_cache
def headers_digest() -> str:
    """Return the SHA-256 over the names and contents of `kopt_headers`: part of every cache key."""
    return digest_of(kopt_headers())


def digest_of(headers: Mapping[str, bytes]) -> str:
    """Return the SHA-256 over names and contents, 64 hex digits."""
    return content_hash(part for header in headers.items() for part in header)


def include_root(settings: Settings) -> Path:
    """Return the absolute folder for -I that holds kopt/*.cuh, made on first use.

    Raises:
        SetupError: KOPT_HOME cannot be written.
    """
    headers = {f"kopt/{name}": content for name, content in kopt_headers().items()}
    return content_folder(settings, headers_digest(), headers)


def content_folder(settings: Settings, digest: str, headers: Mapping[str, bytes]) -> Path:
    """Return the folder that holds `headers` by relative path, named by their digest."""
    parent = settings.home.absolute() / "cache" / "include"
    target = parent / digest[:16]
    if is_sealed(target):
        return target
    ensure_folder(parent)
    sweep_abandoned(parent)
    with staging_folder(target) as tree:
        for name, content in headers.items():
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        publish_sealed(tree, target, durable=True)
    return target


def cuda_include_folders() -> tuple[Path, ...]:
    """Return the folders of CUDA's header wheels, for g++; nvcc and NVRTC know their own.

    Raises:
        SetupError: A wheel is not installed.
    """
    root = pip_toolkit_root()
    missing = [
        wheel
        for wheel, header in _OF_WHEELS.items()
        if root is None or not (root / header).is_file()
    ]
    if root is None or missing:
        wheels = " ".join(f"'{_requirement(wheel)}'" for wheel in missing)
        raise SetupError(
            f"CUDA's headers are missing ({', '.join(missing)}), and without them the simulator"
            f" checks nothing: {sys.executable} -m pip install --force-reinstall --no-deps {wheels}"
        )
    return root / "include", root / "include" / "cccl"


def _requirement(wheel: str) -> str:
    """Return `wheel` with the version that kopt asks for; as it is where kopt is not installed."""
    try:
        wanted = requires("kopt-mcp") or []
    except PackageNotFoundError:
        return wheel
    ours = (one.partition(";")[0].strip() for one in wanted)
    return next((one for one in ours if one.startswith(wheel)), wheel)
