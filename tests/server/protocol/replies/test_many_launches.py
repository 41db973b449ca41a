"""Plans of a hundred launches: replies and views show the functions that need most, and totals."""

import io
import json

import pytest
from rich.console import Console

from kopt.kernels.compile_result import Build, CompileResult, KernelResources, Toolchain
from kopt.kernels.status import Status
from kopt.server.protocol.replies.reply import job_reply
from kopt.server.views.compile_view import CompiledFile, compile_view
from support.job_views import KERNEL, done_job
from support.sound_replies import text_of

FUNCTIONS = 100
MOST_BYTES = 25_000


def _kernel(number: int) -> KernelResources:
    return KernelResources(
        name=f"k{number}_batch_norm_and_relu",
        registers_per_thread=16 + number,
        spill_store_bytes=4 if number == 7 else 0,
        spill_load_bytes=0,
        stack_bytes=0,
        static_smem_bytes=0,
        constant_bytes=0,
        barriers=0,
        max_threads_per_block=None,
        parameters=(),
        instructions=100,
        instruction_mix={"ffma": 60, "ldg": 20, "stg": 20},
    )


def _compiled(functions: int) -> CompileResult:
    workload = KERNEL.removeprefix("silu_and_mul_")
    build = Build(
        arch="sm_90a",
        defines={},
        workloads=(workload,),
        cubin_sha256="0" * 64,
        cubin_path="x.cubin",
        module_global_bytes=0,
        kernels=tuple(map(_kernel, range(functions))),
        toolchain=Toolchain(compiler="nvcc", version="13.2", path="nvcc", origin="pip"),
        compile_s=1.0,
        cached=False,
    )
    return CompileResult(status=Status.PASSED, kernel=KERNEL, candidate="c" * 64, builds=(build,))


def test_a_reply_on_a_hundred_functions_is_short() -> None:
    reply = job_reply(done_job(_compiled(FUNCTIONS)), "concise")
    assert len(reply.model_dump_json(by_alias=True, exclude_none=True).encode()) < MOST_BYTES


def test_a_page_of_a_full_reply_has_a_text_as_short() -> None:
    reply = job_reply(done_job(_compiled(FUNCTIONS)), "full")
    assert len(text_of(reply).encode()) < MOST_BYTES
    assert reply.structured_content is not None
    assert "next_offset" in reply.structured_content


def test_a_reply_begins_with_the_functions_that_need_most_and_has_totals() -> None:
    facts = job_reply(done_job(_compiled(FUNCTIONS)), "concise").structured_content
    assert facts is not None
    names = [row["function"].strip('"') for row in facts["computed"]["functions"]]
    assert names[:2] == ["k7_batch_norm_and_relu", "k99_batch_norm_and_relu"]
    assert "100 functions" in facts["computed"]["all_functions"]
    assert "16 to 115 registers a thread; 1 of them spill, 4 bytes" in json.dumps(facts)


def test_eight_functions_stand_in_their_own_order_without_totals() -> None:
    facts = job_reply(done_job(_compiled(8)), "full").structured_content
    assert facts is not None
    names = [row["function"] for row in facts["computed"]["functions"]]
    assert [int(name.strip('"')[1]) for name in names] == list(range(8))
    assert "all_functions" not in facts["computed"]


@pytest.mark.parametrize(("functions", "rows"), [(8, 8), (FUNCTIONS, 8)])
def test_a_terminal_shows_eight_functions_at_most(functions: int, rows: int) -> None:
    screen = Console(file=io.StringIO(), width=200)
    result = _compiled(functions)
    workload = result.builds[0].workloads[0]
    for part in compile_view([CompiledFile("mine.cu", workload, result)]):
        screen.print(part)
    assert isinstance(screen.file, io.StringIO)
    text = screen.file.getvalue()
    assert text.count("_batch_norm_and_relu") == rows
    assert ("100 functions" in text) == (functions > rows)
