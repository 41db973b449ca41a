"""Facts beside the unproven kernels: of these very sources, and without a claim that none made."""

import re
from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.kernels.candidate import read_candidate
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.shipped_kernels import shipped_kernels
from kopt.kernels.unproven_facts import (
    SM_100_BODIES,
    UnprovenFacts,
    facts_of,
    read_facts,
    sm_100_bodies,
)
from kopt.tools.cuda.include_tree import kopt_headers

MISSION = (
    "add_rmsnorm_fp4quant_b128xh2048",
    "add_rmsnorm_fp4quant_b128xh4096",
    "add_rmsnorm_fp4quant_b128xh8192",
    "nvfp4_quantize_m128xk14336",
    "silu_mul_fp4quant_b8xm256xk7168",
)


def _unproven() -> dict[str, tuple[Problem, Workload, Path]]:
    return {
        problem.kernel_id(workload): (problem, workload, shipped.source)
        for problem in load_problems().values()
        for workload in problem.workloads
        for shipped in shipped_kernels(problem, workload)
        if shipped.standing == "unproven"
    }


UNPROVEN = _unproven()


def _facts(kernel: str) -> UnprovenFacts:
    return read_facts(facts_of(UNPROVEN[kernel][2]))


def test_every_mission_kernel_has_one() -> None:
    assert set(MISSION) <= UNPROVEN.keys()


@pytest.mark.parametrize("kernel", UNPROVEN)
def test_facts_are_of_the_sources_as_they_are(kernel: str) -> None:
    problem, workload, source = UNPROVEN[kernel]
    facts = _facts(kernel)
    reference = read_candidate(problem.folder / "reference.cu")
    assert facts.candidate == facts.own.candidate == read_candidate(source).id
    assert facts.reference.candidate == reference.id
    assert facts.kernel == kernel
    assert workload.name in facts.sim.workloads
    assert facts.other_gpu is None or facts.other_gpu.candidate == facts.candidate


@pytest.mark.parametrize("kernel", UNPROVEN)
def test_facts_are_what_the_design_promises(kernel: str) -> None:
    facts = _facts(kernel)
    own = facts.own
    assert (facts.sim.status, facts.sim.level) == ("passed", "full")
    assert own.spill_bytes == 0
    assert own.instruction_mix["ldg_256"] > 0
    assert "ldg_16" not in own.instruction_mix
    assert own.conversions["E2M1"] > 0
    assert "E2M1" not in facts.elsewhere.conversions
    assert own.estimated_us < facts.reference.estimated_us
    assert facts.memory_floor_us < own.estimated_us


def test_workloads_of_a_problem_share_one_source() -> None:
    for problem in {entry[0].name: entry[0] for entry in UNPROVEN.values()}.values():
        sources = [entry[2] for entry in UNPROVEN.values() if entry[0].name == problem.name]
        assert len(sources) == len(problem.workloads)
        assert len({path.read_bytes() for path in sources}) == 1


def test_wrappers_with_a_body_of_their_own_are_all_named() -> None:
    headers = b"".join(kopt_headers().values()).decode()
    choices = re.findall(r"^#(?:el)?if .*__CUDA_ARCH__ >= 1000", headers, re.MULTILINE)
    assert len(choices) == len(SM_100_BODIES)
    for name in SM_100_BODIES:
        assert re.search(rf"__forceinline__ [\w ]+ {name}\(", headers), name


def test_wrappers_are_found_by_their_calls() -> None:
    assert sm_100_bodies("kopt::load_32(p); kopt::mul2_of(x); store_32(p, v);") == ("load_32",)


def test_a_file_of_another_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "b8.sm_100a.facts.json"
    path.write_text('{"schema": "kopt.receipt/1"}')
    with pytest.raises(ToolError, match=r"no kopt\.unproven/1"):
        read_facts(path)
    with pytest.raises(ToolError, match="cannot read"):
        read_facts(tmp_path / "missing.facts.json")
