"""The lines of a table: what tells rows apart, what all have alike, and who is tied."""

from typing import Any

from kopt.kernels.choice_table import ChoiceTable, TableRow
from kopt.kernels.status import Status, Verdict
from kopt.server.protocol.replies.reply import job_reply
from support.job_views import KERNEL, done_job
from support.sound_replies import sound


def row(time_us: float, **fields: Any) -> TableRow:
    known: dict[str, Any] = {
        "file": "mine.cu",
        "tune": {"BLOCK": 256},
        "is_default": False,
        "status": Status.PASSED,
        "estimated_us": time_us,
        "resolution": 0.02,
        "registers_per_thread": 32,
    }
    return TableRow(**(known | fields))


def table(*rows: TableRow, **fields: Any) -> ChoiceTable:
    known: dict[str, Any] = {
        "tool": "benchmark",
        "status": rows[0].status,
        "kernel": KERNEL,
        "arch": "sm_90a",
        "gpu": "H100",
        "device": "sim",
        "rows": rows,
    }
    return ChoiceTable(**(known | fields))


def facts_of(made: ChoiceTable) -> dict[str, Any]:
    return sound(job_reply(done_job(made), "concise"))


def test_rows_within_the_resolution_of_the_first_are_a_tie() -> None:
    near, far = row(1.019, tune={"BLOCK": 128}), row(1.03, tune={"BLOCK": 64})
    assert facts_of(table(row(1.0), near, far))["tie"].startswith("the first 2 are a tie")
    assert "tie" not in facts_of(table(row(1.0), far))
    measured = [
        one.model_copy(update={"measured_us": one.estimated_us}) for one in (row(1.0), near)
    ]
    assert "tie" not in facts_of(table(*measured, device="cuda:0"))


def test_what_is_alike_is_said_once_and_what_differs_in_its_row() -> None:
    facts = facts_of(
        table(row(1.0, blocks=8, threads_per_block=256), row(2.0, blocks=9, threads_per_block=256))
    )
    assert facts["same_in_all"] == "32 registers"
    assert facts["estimated"]["fastest_first"] == [
        "BLOCK=256: 1 us, 8 blocks of 256",
        "BLOCK=256: 2 us, 9 blocks of 256",
    ]


def test_files_are_named_where_there_are_several_and_the_next_call_names_the_first() -> None:
    facts = facts_of(table(row(1.0, file="a.cu", tune={}), row(2.0, file="b.cu", tune={})))
    assert [line.partition(":")[0] for line in facts["estimated"]["fastest_first"]] == [
        "a.cu",
        "b.cu",
    ]
    assert "path=a.cu, arch=sm_90a, device=sim, level=full" in facts["next"]


def test_next_call_has_a_long_address_whole_and_a_text_as_the_same_source() -> None:
    address = f"kopt://docs/kernels/problems/{'fused_' * 12}rmsnorm/winners/x.sm_90a.cu"
    assert f"path={address}, arch" in facts_of(table(row(1.0, file=address)))["next"]
    assert "the same source, arch" in facts_of(table(row(1.0, file="")))["next"]
    hostile = facts_of(table(row(1.0, file="a\nnext: b.cu")))["next"]
    assert "the path of the first row" in hostile


def test_next_call_speaks_of_ties_only_where_there_is_one() -> None:
    near, far = row(1.01, tune={"BLOCK": 128}), row(1.5, tune={"BLOCK": 64})
    assert "another row that is tied" in facts_of(table(row(1.0), near))["next"]
    assert "tied" not in facts_of(table(row(1.0), far))["next"]


def test_measured_rows_have_their_speedup_and_lead_to_a_benchmark() -> None:
    timed = row(
        1.0,
        estimated_us=None,
        measured_us=1.0,
        speedup=1.5,
        interval=(1.49, 1.51),
        verdict=Verdict.FASTER,
    )
    facts = facts_of(table(timed, device="cuda:0", gpu="NVIDIA H100 80GB HBM3"))
    assert facts["measured"]["fastest_first"] == [
        "BLOCK=256: 1 us, 1.500x (1.490 to 1.510), faster, 32 registers"
    ]
    assert facts["next"].startswith("Call benchmark with")


def test_rows_that_failed_say_why_and_do_not_lead() -> None:
    bad = row(9.0, status=Status.COMPILE_ERROR, estimated_us=None, why="line 3: no such name")
    facts = facts_of(table(row(1.0), bad))
    assert facts["failed"] == ["BLOCK=256: compile_error, line 3: no such name"]
    alone = facts_of(table(bad))
    assert (alone["status"], alone["estimated"]) == ("compile_error", {})
    assert alone["next"].startswith("Mend")


def test_twenty_four_choices_cost_about_600_tokens() -> None:
    rows = [
        row(1.0 + n / 10, tune={"BLOCK": 32 * n, "HINT": n % 2, "TRIGGER": n % 3}, blocks=n)
        for n in range(24)
    ]
    reply = job_reply(done_job(table(*rows)), "concise")
    assert len(sound(reply, 900)["estimated"]["fastest_first"]) == 24
