"""What machine code says about claimed families: honest ones are believed, false ones are not."""

from typing import Any

import pytest

from kopt.kernels.compile_result import Build, KernelResources, Occupancy, Toolchain
from kopt.kernels.families import FAMILIES
from kopt.kernels.plan import Launch, LaunchPlan
from kopt.search.selection.family_evidence import MachineCode, judge_family


def _code(
    mix: dict[str, int] | None = None, waves: float | None = None, **fields: Any
) -> MachineCode:
    kernel = KernelResources(
        name="k",
        registers_per_thread=32,
        spill_store_bytes=0,
        spill_load_bytes=0,
        stack_bytes=0,
        static_smem_bytes=0,
        constant_bytes=0,
        barriers=0,
        max_threads_per_block=fields.get("threads"),
        parameters=(),
        instructions=None if mix is None else 99,
        instruction_mix=mix or {},
    )
    build = Build(
        arch="sm_100a",
        defines={},
        workloads=("b8",),
        cubin_sha256="c" * 64,
        cubin_path="cubin",
        module_global_bytes=0,
        kernels=(kernel,),
        toolchain=Toolchain(compiler="nvcc", version="13.2", path="nvcc", origin="path"),
        compile_s=0.1,
        cached=False,
    )
    cluster = fields.get("cluster", (1, 1, 1))
    launch = Launch(kernel="k", grid=(64, 1, 1), block=(64, 1, 1), cluster=cluster, arguments=())
    plan = LaunchPlan(
        workload="b8",
        axes={},
        defines={},
        launches=(launch,),
        max_registers=fields.get("max_registers"),
    )
    occupancy = Occupancy(
        kernel="k",
        gpu="B200",
        blocks_per_sm=1,
        warps_per_sm=2,
        theoretical_occupancy=0.5,
        limiters=("blocks",),
        grid_blocks=64,
        waves=waves or 0.0,
    )
    return MachineCode(build, plan, () if waves is None else (occupancy,))


@pytest.mark.parametrize(
    ("family", "code"),
    [
        ("vectorization", _code({"ldg_32": 9, "stg_128": 1})),
        ("vectorization", _code({"ldg_16": 9, "ldgsts": 1})),
        ("fp4_intrinsics", _code({"f2fp": 4})),
        ("tensor_cores", _code({"mma": 1})),
        ("async_pipeline", _code({"tma": 1})),
        ("reduction", _code({"shfl": 5})),
        ("smem_tiling", _code({"lds": 1})),
        ("bank_conflicts", _code({"sts": 1})),
        ("fast_math", _code({"mufu": 1})),
        ("clusters", _code(cluster=(2, 1, 1))),
        ("persistent", _code(waves=0.9)),
        ("launch_bounds", _code(threads=256)),
        ("launch_bounds", _code(max_registers=64)),
    ],
)
def test_honest_claims_are_shown(family: str, code: MachineCode) -> None:
    evidence = judge_family(family, code)
    assert (evidence.verdict, bool(evidence.why)) == ("shown", True)


@pytest.mark.parametrize(
    ("family", "code", "why"),
    [
        ("vectorization", _code({"ldg_32": 6, "stg_16": 2}), "0 of 8 global loads and stores"),
        ("fp4_intrinsics", _code({"ldg_32": 1}), "0 packed conversions"),
        ("tensor_cores", _code({"ldg_128": 1}), "0 matrix instructions"),
        ("async_pipeline", _code({"ldg_128": 1}), "0 asynchronous or bulk copies"),
        ("reduction", _code({"ldg_128": 1}), "0 shuffles, barriers and atomics"),
        ("smem_tiling", _code({"ldg_128": 1}), "0 instructions access shared memory"),
        ("bank_conflicts", _code({"shfl": 1}), "0 instructions access shared memory"),
        ("fast_math", _code({"ldg_32": 1}), "0 special-function instructions"),
        ("clusters", _code(), "the largest cluster has 1 block"),
        ("persistent", _code(waves=4.0), "the blocks of a launch make 4.00 waves"),
        ("launch_bounds", _code(), "launch bounds on 0 of 1 kernel"),
    ],
)
def test_claims_that_the_code_cannot_bear_out_are_contradicted(
    family: str, code: MachineCode, why: str
) -> None:
    evidence = judge_family(family, code)
    assert evidence.verdict == "contradicted"
    assert evidence.why.startswith(why)


@pytest.mark.parametrize(
    ("family", "code"),
    [
        ("tensor_cores", _code()),
        ("vectorization", _code()),
        ("vectorization", _code({"ld": 4, "ldg_32": 4})),
        ("smem_tiling", _code({"ld": 4})),
        ("persistent", _code()),
    ],
)
def test_what_cannot_be_read_contradicts_nothing(family: str, code: MachineCode) -> None:
    assert judge_family(family, code).verdict == "not_told"


def test_families_without_a_mark_of_their_own_are_taken_at_their_word() -> None:
    told = {
        one for one in FAMILIES if judge_family(one, _code({"ldg_32": 1})).verdict != "not_told"
    }
    assert told == {
        "async_pipeline",
        "bank_conflicts",
        "clusters",
        "fast_math",
        "fp4_intrinsics",
        "launch_bounds",
        "reduction",
        "smem_tiling",
        "tensor_cores",
        "vectorization",
    }
