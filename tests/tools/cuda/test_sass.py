"""Counting instructions of cubins that nvcc makes here."""

from dataclasses import replace

import pytest

from kopt.config.settings import Settings
from kopt.tools.cuda.cubin import read_cubin
from kopt.tools.cuda.sass import SassFunction, disassemble, instruction_class
from kopt.tools.cuda.sass_reader import read_instructions
from kopt.tools.cuda.toolchain import FoundToolchain
from support.cuda_sources import FP4_QUANTIZE, cubin_of

pytestmark = pytest.mark.slow  # a compile each
MIXED = """
extern "C" __global__ void mixed(const float4* a, float2* b, const char* c, short* d, float* e) {
  extern __shared__ float tile[];
  float4 v = a[threadIdx.x];
  tile[threadIdx.x] = v.x + c[threadIdx.x];
  __syncthreads();
  b[threadIdx.x] = make_float2(tile[threadIdx.x ^ 1], __shfl_xor_sync(~0u, v.y, 1));
  d[threadIdx.x] = (short)v.z;
  atomicAdd(e, rsqrtf(v.w));
}
"""


def functions_of(
    source: str, settings: Settings, toolchain: FoundToolchain, arch: str
) -> dict[str, SassFunction]:
    functions = disassemble(cubin_of(source, settings, arch), toolchain, settings)
    assert functions is not None
    return {function.name: function for function in functions}


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_widths_and_classes_of_a_mixed_kernel_are_counted(
    settings: Settings, toolchain: FoundToolchain, arch: str
) -> None:
    mixed = functions_of(MIXED, settings, toolchain, arch)["mixed"]
    expected = {
        **{"ldg_128": 1, "ldg_8": 1, "stg_64": 1, "stg_16": 1},
        **{"lds": 1, "sts": 1, "shfl": 1, "bar": 1, "mufu": 1},
    }
    assert {name: mixed.mix.get(name) for name in expected} == expected
    assert mixed.mix["atom"] >= 1
    assert "ldg_32" not in mixed.mix
    assert mixed.screened == frozenset()


def test_hardware_conversion_takes_fewer_instructions_than_software(
    settings: Settings, toolchain: FoundToolchain
) -> None:
    hopper = functions_of(FP4_QUANTIZE, settings, toolchain, "sm_90a")["quantize"]
    blackwell = functions_of(FP4_QUANTIZE, settings, toolchain, "sm_100a")["quantize"]
    assert blackwell.conversions["e2m1"] >= 8
    assert "e2m1" not in hopper.conversions
    assert blackwell.instructions * 2 < hopper.instructions


def test_without_nvdisasm_there_are_no_counts(
    settings: Settings, toolchain: FoundToolchain
) -> None:
    assert disassemble(b"", replace(toolchain, nvdisasm=None), settings) is None


@pytest.mark.parametrize(
    ("opcode", "expected"),
    [
        ("LDG.E.128.CONSTANT", "ldg_128"),
        ("LDG.E.U16.CONSTANT", "ldg_16"),
        ("LDG.E.S8", "ldg_8"),
        ("LDG.E", "ldg_32"),
        ("STG.E.ENL2.256", "stg_256"),
        ("STG.E.EF.64", "stg_64"),
        ("LDL.64", "ldl"),
        ("STL", "stl"),
        ("LDSM.16.M88.4", "lds"),
        ("LDGSTS.E.BYPASS.128", "ldgsts"),
        ("HGMMA.64x64x16.F32", "mma"),
        ("UTCHMMA", "mma"),
        ("REDG.E.ADD.F32.FTZ.RN.STRONG.GPU", "atom"),
        ("F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C", "f2fp"),
        ("BAR.SYNC.DEFER_BLOCKING", "bar"),
        ("LDC.64", None),
        ("IMAD.MOV.U32", None),
    ],
)
def test_an_opcode_has_one_class(opcode: str, expected: str | None) -> None:
    assert instruction_class(opcode) == expected


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_streaming_stores_are_told_from_others_and_from_loads(
    settings: Settings, toolchain: FoundToolchain, arch: str
) -> None:
    source = """
extern "C" __global__ void copy(const float4* a, float4* b, float* c) {
  const float4 v = __ldcs(a + threadIdx.x);
  __stcs(b + threadIdx.x, v);
  __stcs(c + threadIdx.x, v.x);
  c[threadIdx.x + 512] = v.y;
}
"""
    read = read_instructions(read_cubin(cubin_of(source, settings, arch)), arch)
    assert read == tuple(functions_of(source, settings, toolchain, arch).values())
    assert read is not None and read[0].streaming_stores == 2


@pytest.mark.parametrize(
    ("arch", "body", "share"),
    [
        ("sm_90a", "c[t] = a[t].x * a[t].y + c[t];", 0.0),
        ("sm_90a", "h[t] = __hmax2(h[t], h[t + 32]);", 1.0),
        ("sm_100a", "a[t] = __fadd2_rn(a[t], a[t + 32]);", 1.0),
        ("sm_90a", "c[t] = c[t] + __low2float(*(__half2*)&h[t]);", 0.0),
        ("sm_90a", "c[t] = t & 1 ? 1.875f : 0.8f; c[t + 32] = c[t + 64] + c[t];", 0.0),
    ],
)
def test_packed_arithmetic_is_told_from_scalar(
    settings: Settings, toolchain: FoundToolchain, arch: str, body: str, share: float
) -> None:
    source = f"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>
extern "C" __global__ void work(float2* a, float* c, __nv_bfloat162* h) {{
  const int t = threadIdx.x;
  {body}
}}
"""
    (read,) = functions_of(source, settings, toolchain, arch).values()
    assert read.packed_math == share


def test_called_functions_count_for_their_kernel(
    settings: Settings, toolchain: FoundToolchain
) -> None:
    source = """
__device__ __noinline__ float helper(const float* a) {
  cudaGridDependencySynchronize();
  return a[0] + a[1];
}
extern "C" __global__ void first(float* o) { o[0] = helper(o + 8) + helper(o + 16); }
extern "C" __global__ void second(float* o) { o[0] = 1.0f; }
"""
    functions = functions_of(source, settings, toolchain, "sm_90a")
    assert set(functions) == {"first", "second"}
    assert functions["first"].mix["ldg_32"] == 2
    assert functions["first"].waits_for_producer
    assert not functions["second"].waits_for_producer
