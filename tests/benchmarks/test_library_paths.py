"""Which library operators benchmarks/library_paths.py finds near a problem, and calls timed."""

from pathlib import Path

import pytest
from library_paths import operators, rows_of

from kopt.kernels.problem_loader import load_problems

SOURCES = {
    "gemm/gemm_base.py": """
@flashinfer_api
def mm_bf16(a, b, backend: Literal["cudnn", "cublaslt", "cutile"] = "cudnn"): ...
@flashinfer_api(trace=True)
def grouped_mm_bf16(a, b): ...
def mm_bf16_helper(a): ...
""",
    "norm/__init__.py": "@flashinfer_api\ndef rmsnorm(x): ...\n",
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for name, text in SOURCES.items():
        path = tmp_path / name
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_public_functions_are_found_with_their_backends(package: Path) -> None:
    found = {f"{one.module}.{one.name}": one.backends for one in operators(package)}
    assert found == {
        "gemm.gemm_base.mm_bf16": ("cudnn", "cublaslt", "cutile"),
        "gemm.gemm_base.grouped_mm_bf16": (),
        "norm.rmsnorm": (),
    }


def test_a_backend_that_no_baseline_calls_is_not_timed(package: Path) -> None:
    rows = set(rows_of(load_problems()["gemm_bf16"], list(operators(package))))
    operator = "gemm.gemm_base.mm_bf16"
    assert rows == {
        ("gemm_bf16", operator, "cudnn", "yes"),
        ("gemm_bf16", operator, "cublaslt", "yes"),
        ("gemm_bf16", operator, "cutile", "no"),
        ("gemm_bf16", "gemm.gemm_base.grouped_mm_bf16", "", "no"),
    }
