"""pins.yaml against what everything else relies on."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from kopt.tools.docs.library.pins import (
    PackagePin,
    default_keys,
    known_libraries,
    path_by,
    pins,
)
from kopt.tools.docs.sources import SOURCES
from support.archives import pin_of

ROOT = Path(__file__).parents[4]
PACKAGES = pins().packages
TORCH_BYTES = 1_700_000
"""What is read of PyTorch's wheel: its directory and the blocks with the headers."""


def test_every_pinned_source_is_known_and_every_known_one_can_be_had() -> None:
    assert {*PACKAGES, *pins().repositories, *pins().installed} == set(known_libraries())


def test_no_library_has_the_name_of_an_own_source() -> None:
    assert set(known_libraries()).isdisjoint(SOURCES)


def test_weights_are_shares() -> None:
    assert all(0 < library.quality <= 1 for library in known_libraries().values())


@pytest.mark.parametrize("pin", PACKAGES.values(), ids=PACKAGES)
def test_pins_name_one_file_of_their_version(pin: PackagePin) -> None:
    assert pin.filename.startswith(f"{pin.project.replace('-', '_')}-{pin.version}")
    assert re.fullmatch(r"[0-9a-f]{64}", pin.sha256 or pin.members_sha256 or "")


def test_by_default_the_inference_libraries_and_headers_are_obtained() -> None:
    assert default_keys() == ("flashinfer", "cutlass", "vllm", "sglang", "torch", "cuda")
    assert {*default_keys(), "liger", "quack", "flash_attn"} == set(PACKAGES)


@pytest.mark.parametrize(
    "file",
    [
        "docs/search.md",
        "docs/session.md",
        "server/commands/docs_build.py",
        "tools/docs/query/search.py",
    ],
)
def test_size_of_the_default_download_is_told_as_it_is(file: str) -> None:
    whole = [PACKAGES[key].size_bytes for key in default_keys() if PACKAGES[key].sha256]
    assert f" {(sum(whole) + TORCH_BYTES) / 1e6:.0f} MB" in (ROOT / file).read_text("utf-8")


@pytest.mark.parametrize(
    ("key", "member", "path"),
    [
        ("flashinfer", "flashinfer/data/csrc/norm.cu", "csrc/norm.cu"),
        ("flashinfer", "flashinfer/data/include/flashinfer/a.cuh", "include/flashinfer/a.cuh"),
        ("flashinfer", "flashinfer/data/cutlass/include/a.h", None),
        ("flashinfer", "flashinfer/data/aot.py", None),
        ("flashinfer", "flashinfer/norm.py", "flashinfer/norm.py"),
        ("cutlass", "cutlass_library/source/include/cute/a.hpp", "include/cute/a.hpp"),
        ("cutlass", "cutlass_library/source/tools/util/a.h", "tools/util/a.h"),
        ("cutlass", "cutlass_library/source/tools/profiler/a.h", None),
        ("cutlass", "cutlass_library/generator.py", None),
        ("vllm", "vllm-0.23.0/csrc/libtorch_stable/a.cu", "csrc/libtorch_stable/a.cu"),
        ("vllm", "vllm-0.23.0/vllm/ops/a.py", "vllm/ops/a.py"),
        ("vllm", "vllm/ops/a.py", "vllm/ops/a.py"),
        ("vllm", "vllm-0.23.0/tests/a.py", None),
        ("sglang", "sglang/jit_kernel/csrc/a.cuh", "sglang/jit_kernel/csrc/a.cuh"),
        ("torch", "torch/include/ATen/native/cuda/a.cuh", "ATen/native/cuda/a.cuh"),
        ("torch", "torch/include/ATen/cuda/a.h", "ATen/cuda/a.h"),
        ("torch", "torch/include/ATen/cpu/a.h", None),
        ("cuda", "nvidia/cu13/include/cuda_fp8.h", "cuda_fp8.h"),
        ("cuda", "nvidia/cu13/include/cuda_bf16.h", "cuda_bf16.h"),
        ("cuda", "nvidia/cu13/include/cuda_fp8.hpp", None),
        ("cuda", "nvidia/cu13/include/cuda_runtime.h", None),
    ],
)
def test_members_have_the_paths_that_answers_name(key: str, member: str, path: str | None) -> None:
    assert path_by(PACKAGES[key].members, member) == path


@pytest.mark.parametrize("hashes", [(None, None), ("0" * 64, "0" * 64)])
def test_pin_has_exactly_one_hash(hashes: tuple[str | None, str | None]) -> None:
    fields = pin_of(b"").model_dump() | {"sha256": hashes[0], "members_sha256": hashes[1]}
    with pytest.raises(ValidationError, match="either sha256 or members_sha256"):
        PackagePin.model_validate(fields)
