"""Excerpts of machine code: the block that is run most, what came of a line, what it waits for."""

import re
from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.profile_result import MachineExcerpt
from kopt.server.protocol.replies.reply import job_reply
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.cuda.lined_listing import lined_instructions
from kopt.tools.cuda.nvdisasm import list_instructions
from kopt.tools.cuda.toolchain import find_toolchain
from kopt.tools.profiling.machine_excerpt import MOST_SHOWN
from kopt.tools.profiling.stage import ProfileRequest, profile_candidate
from support.job_views import done_job
from support.job_works import KERNEL, REFERENCE
from support.sound_replies import sound

pytestmark = pytest.mark.slow  # a compile each
LINE_OF_EXP = 1 + next(n for n, line in enumerate(REFERENCE.splitlines()) if "expf(-gate)" in line)
ROW = re.compile(r"([0-9a-f]{4})( L\d+)? (@!?U?P\d )?[A-Z][A-Z0-9_.]+.*; stall \d+")


def profiled(asked: str, settings: Settings, source: str = REFERENCE) -> MachineExcerpt:
    case = Case(*find_kernel(KERNEL), Candidate(source))
    result = profile_candidate(ProfileRequest(case, "sm_90a", sass=asked), settings)
    assert result.machine_code is not None
    return result.machine_code


def test_the_hottest_block_is_the_loop_s(settings: Settings) -> None:
    found = profiled("hot", settings)
    assert found.function == "silu_and_mul_kernel"
    assert "hottest block" in found.about and "%" in found.about
    assert any("LDG" in row for row in found.rows)
    assert all(ROW.fullmatch(row) or row == "..." for row in found.rows), found.rows
    assert len(found.rows) <= MOST_SHOWN


def test_rows_are_the_instructions_of_the_cubin_and_a_load_is_waited_for(
    settings: Settings,
) -> None:
    found = profiled(str(LINE_OF_EXP), settings)
    assert any(f" L{LINE_OF_EXP} MUFU.EX2" in row for row in found.rows)
    case = Case(*find_kernel(KERNEL), Candidate(REFERENCE))
    compiled = profile_candidate(ProfileRequest(case, "sm_90a"), settings)
    assert compiled.launches[0].resources.instructions == found.instructions
    sets = {board for row in found.rows for board in re.findall(r"MUFU.*sets (\d)", row)}
    waits = {board for row in found.rows for board in re.findall(r"waits ([\d ]+)", row)}
    assert sets and sets & set(" ".join(waits).split())


def test_a_line_without_instructions_is_answered_with_those_that_have_some(
    settings: Settings,
) -> None:
    with pytest.raises(ToolError, match=rf"no instruction came of line 2; .*\b{LINE_OF_EXP}\b"):
        profiled("2", settings)


@pytest.mark.parametrize("asked", ["hottest", "-3", "0", "1.5", "L3", "³"])
def test_what_is_no_line_is_refused_before_anything_is_compiled(asked: str, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"sass is .*: expected is"):
        profiled(asked, Settings(home=tmp_path))


def test_inlined_code_has_the_line_of_the_candidate_that_calls_it(settings: Settings) -> None:
    source = REFERENCE.replace("#include <cuda_bf16.h>", "#include <cuda_bf16.h>\n\n\n")
    found = profiled(str(LINE_OF_EXP + 3), settings, source)
    assert any(f" L{LINE_OF_EXP + 3} F2F" in row or "F2FP" in row for row in found.rows)


def test_a_reply_has_the_code_alone_and_says_how_it_is_read(settings: Settings) -> None:
    case = Case(*find_kernel(KERNEL), Candidate(REFERENCE))
    request = ProfileRequest(case, "sm_90a", sass="hot")
    result = profile_candidate(request, settings)
    facts = sound(job_reply(done_job(result), "concise"))
    code = facts["computed"]["machine_code"]
    assert code["sass"] and code["function"] == "silu_and_mul_kernel"
    assert "bottleneck" not in facts and "scoreboards" in facts["reading"]
    full = sound(job_reply(done_job(result), "full"), 5_000)
    assert full["bottleneck"]["name"] and full["computed"]["launches"]


def test_nvdisasm_s_two_forms_have_the_same_instructions(settings: Settings) -> None:
    case = Case(*find_kernel(KERNEL), Candidate(REFERENCE))
    (build,) = compile_candidate(CompileRequest(case, ("sm_90a",)), settings).builds[:1]
    cubin = Path(build.cubin_path).read_bytes()
    toolchain = find_toolchain(settings)
    plain = list_instructions(cubin, toolchain, settings)
    lined = lined_instructions(cubin, toolchain, settings)
    assert plain is not None and lined is not None
    for name, instructions in plain.items():
        opcodes = [text.split()[1 if text[0] == "@" else 0] for text in instructions]
        found = [one.text.split()[1 if one.text[0] == "@" else 0] for one in lined[name]]
        assert found == opcodes
