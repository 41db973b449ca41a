"""Facts beside the unproven kernels: of these very sources, and without a claim that none made."""

import re
from pathlib import Path

import pytest
from unproven_facts import subjects

from kopt.config.errors import ToolError
from kopt.kernels.candidate import read_candidate
from kopt.kernels.unproven_facts import (
    SM_100_BODIES,
    UnprovenFacts,
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


UNPROVEN = {subject.kernel: subject for subject in subjects()}


def _facts(kernel: str) -> UnprovenFacts:
    return read_facts(UNPROVEN[kernel].shipped.evidence)


def test_every_mission_kernel_has_one() -> None:
    assert set(MISSION) <= UNPROVEN.keys()


@pytest.mark.parametrize("kernel", UNPROVEN)
def test_facts_are_of_the_sources_as_they_are(kernel: str) -> None:
    subject, facts = UNPROVEN[kernel], _facts(kernel)
    reference = read_candidate(subject.problem.folder / "reference.cu")
    assert facts.candidate == facts.own.candidate == subject.candidate().id
    assert facts.reference.candidate == reference.id
    assert facts.kernel == kernel
    assert subject.workload.name in facts.sim.workloads
    assert facts.other_gpu is None or facts.other_gpu.candidate == facts.candidate


@pytest.mark.parametrize("kernel", UNPROVEN)
def test_facts_are_what_the_design_promises(kernel: str) -> None:
    facts = _facts(kernel)
    own = facts.own
    assert (facts.sim.status, facts.sim.level) == ("passed", "full")
    assert own.spill_bytes == 0
    assert own.instruction_mix["ldg_256"] > 0
    assert "ldg_16" not in own.instruction_mix
    assert own.conversions["e2m1"] > 0
    assert "e2m1" not in facts.elsewhere.conversions
    assert own.estimated_us < facts.reference.estimated_us
    assert facts.memory_floor_us < own.estimated_us


def test_workloads_of_a_problem_share_one_source() -> None:
    for problem in {
        subject.problem.name: subject.problem for subject in UNPROVEN.values()
    }.values():
        sources = [UNPROVEN[kernel].candidate().id for kernel in problem.kernel_ids]
        assert len(set(sources)) == 1


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
    with pytest.raises(ToolError, match=r"no kopt\.unproven/2"):
        read_facts(path)
    with pytest.raises(ToolError, match="cannot read"):
        read_facts(tmp_path / "missing.facts.json")
