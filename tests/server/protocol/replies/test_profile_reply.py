"""Replies to profiles: what a GPU said stands apart from estimates, what it did not say is told."""

from typing import Any

import pytest

from kopt.config.gpu_specs import load_gpus
from kopt.kernels.bench_result import Rotation
from kopt.kernels.compile_result import KernelResources, Occupancy
from kopt.kernels.counters import HardwareCounters, LaunchCounters, StallLine, StallShare
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.profile_result import (
    Bottleneck,
    LaunchProfile,
    MeasuredTime,
    ProfileResult,
    Suspect,
    TensorTraffic,
)
from kopt.kernels.roofline import roofline, workload_bytes
from kopt.kernels.status import Provenance, Status
from kopt.server.protocol.replies.reply import job_reply
from support.bench_results import H100, latency
from support.job_views import KERNEL, done_job
from support.sound_replies import PAGE_TOKENS, sound, text_of

STALLS = tuple(
    StallShare(reason=reason, cycles_per_instruction=6.0, fraction=share)
    for reason, share in (("long_scoreboard", 0.6), ("wait", 0.2), ("barrier", 0.1), ("mio", 0.05))
)
COUNTED = LaunchCounters(
    kernel="silu",
    compute_fraction=0.25,
    dram_fraction=0.4,
    achieved_occupancy=0.5,
    occupancy_limiters=("registers",),
    dram_read_bytes=12345,
    stalls=STALLS,
    stall_lines=(StallLine(line=42, reason="long_scoreboard", samples=9, fraction=0.5),),
)
SUSPECT = Suspect(
    name="narrow_access",
    statement="Loads are narrower than 16 bytes.",
    evidence=("silu: 2 ldg_16",),
    gain_us=0.4,
    families=("vectorization",),
)


def counters(launches: tuple[LaunchCounters, ...]) -> HardwareCounters:
    return HardwareCounters(launches=launches, provenance=Provenance.MEASURED)


def profile(launches: int = 1, **fields: Any) -> ProfileResult:
    """Return a profile on an H100, of so many launches."""
    problem, workload = find_kernel(KERNEL)
    model = workload_bytes(problem, workload)
    launch = LaunchProfile(
        kernel="silu",
        grid=(56, 8, 1),
        block=(256, 1, 1),
        dynamic_smem_bytes=0,
        resources=KernelResources(
            name="silu",
            registers_per_thread=40,
            spill_store_bytes=8,
            spill_load_bytes=8,
            stack_bytes=16,
            static_smem_bytes=0,
            constant_bytes=0,
            barriers=0,
            max_threads_per_block=None,
            parameters=(),
            instructions=None,
        ),
        occupancy=Occupancy(
            kernel="silu",
            gpu="H100",
            blocks_per_sm=6,
            warps_per_sm=48,
            theoretical_occupancy=0.75,
            limiters=("registers",),
            grid_blocks=448,
            waves=0.57,
        ),
    )
    known: dict[str, Any] = {
        "status": Status.PASSED,
        "kernel": KERNEL,
        "candidate": "d" * 64,
        "arch": "sm_90a",
        "gpu": "H100",
        "byte_model": model,
        "roofline": roofline(model, load_gpus()["H100"]),
        "launches": (launch,) * launches,
        "suspects": (SUSPECT,),
        "measured": MeasuredTime(
            device="cuda:0",
            gpu=H100,
            latency=latency(2.4),
            null_kernel_us=1.1,
            above_null_us=1.3,
            achieved_gb_s=280.0,
            roofline_fraction=0.1,
            copy_gb_s=2500.0,
            copy_fraction=0.11,
            rotation=Rotation(sets=100, set_bytes=688128, over_l2=2.5),
        ),
        "hardware": HardwareCounters(
            launches=(COUNTED,) * launches, provenance=Provenance.MEASURED
        ),
        "bottleneck": Bottleneck(
            name="memory_bound",
            statement="Memory is busy.",
            facts=("DRAM 40 % (measured)",),
            families=("cache_policy", "layout"),
            provenance=Provenance.MEASURED,
        ),
    }
    return ProfileResult.model_validate(known | fields)


def test_measured_times_counters_and_waits_are_told_as_measured() -> None:
    facts = sound(job_reply(done_job(profile()), "concise"))
    assert facts["bottleneck"]["provenance"] == "measured"
    assert facts["measured"]["latency_us"] == 2.4
    assert facts["measured"]["above_null_us"] == 1.3
    counters = facts["hardware_counters"]
    assert counters["provenance"] == "measured"
    (launch,) = counters["launches"]
    assert launch["dram_fraction"] == 0.4
    assert launch["warps_wait_for"].startswith(
        "long_scoreboard 60%, wait 20%, barrier 10%, line 42"
    )
    assert "estimated" not in facts
    assert "vectorization or cache_policy or layout" in facts["next"]


def test_what_a_counter_did_not_say_is_not_told_as_zero() -> None:
    (launch,) = sound(job_reply(done_job(profile()), "full"), PAGE_TOKENS)["hardware_counters"][
        "launches"
    ]
    assert "l2_hit_fraction" not in launch
    assert launch["dram_read_bytes"] == 12345


def test_counters_that_are_unavailable_say_why() -> None:
    reason = "ERR_NVGPUCTRPERM: ask the administrator"
    hardware = HardwareCounters(provenance=Provenance.UNAVAILABLE, reason=reason)
    facts = sound(job_reply(done_job(profile(hardware=hardware)), "concise"))
    assert facts["hardware_counters"] == {"provenance": "unavailable", "reason": reason}


def test_accesses_that_were_not_counted_are_not_shown_as_none() -> None:
    facts = sound(job_reply(done_job(profile(counters=None)), "concise"))
    assert "not counted" in facts["computed"]["traffic_note"]
    assert "traffic" not in facts["computed"]


def test_only_wasteful_buffers_are_in_the_concise_reply_and_all_in_the_full_one() -> None:
    def traffic(name: str, load_bytes: int, sectors: float) -> TensorTraffic:
        return TensorTraffic(
            name=name,
            role="in",
            needed_read_bytes=1000,
            needed_written_bytes=0,
            load_bytes=load_bytes,
            store_bytes=0,
            sectors_per_request=sectors,
            ideal_sectors_per_request=4.0,
        )

    rows = (traffic("fine", 1000, 4.0), traffic("twice", 2000, 4.0), traffic("strided", 1000, 32.0))
    view = done_job(profile(traffic=rows))
    shown = sound(job_reply(view, "concise"))["computed"]["traffic"]
    assert [row["buffer"] for row in shown] == ["twice", "strided"]
    whole = sound(job_reply(view, "full"), PAGE_TOKENS)["computed"]["traffic"]
    assert [row["buffer"] for row in whole] == ["fine", "twice", "strided"]


@pytest.mark.parametrize("launches", [4, 16])
def test_many_launches_fit_and_are_counted(launches: int) -> None:
    facts = sound(job_reply(done_job(profile(launches)), "concise"))
    assert facts["left_out"]["launches"].endswith(f"of {launches}")
    assert len(facts["computed"]["launches"]) >= 1


def test_trait_with_the_largest_gain_comes_first_in_next_before_what_limits_any_kernel() -> None:
    bound = Suspect(name="memory_latency", statement="Threads wait.", evidence=(), gain_us=2.0)
    larger = SUSPECT.model_copy(
        update={"name": "spills", "gain_us": 0.9, "families": ("launch_bounds",)}
    )
    facts = sound(job_reply(done_job(profile(suspects=(bound, SUSPECT, larger))), "concise"))
    assert "of the family launch_bounds or" in facts["next"]
    assert [one["gain_us"] for one in facts["suspects"]] == [2.0, 0.4, 0.9]


def test_profile_says_that_correctness_was_not_checked() -> None:
    assert sound(job_reply(done_job(profile()), "concise"))["correctness"] == "not checked"
    raced = profile(status=Status.DATA_RACE)
    assert "correctness" not in sound(job_reply(done_job(raced), "concise"))


def test_floor_is_not_below_an_empty_launch_and_all_three_are_shown() -> None:
    computed = sound(job_reply(done_job(profile()), "concise"))["computed"]
    floors = [computed[name] for name in ("memory_floor_us", "compute_floor_us", "empty_launch_us")]
    assert computed["floor_us"] == max(floors) == computed["empty_launch_us"]
    assert computed["bound_by"] == "an empty launch"


def test_tune_values_are_shown_and_asked_for_again() -> None:
    tuned = profile(chosen_tune={"BLOCK": 512}, status=Status.DATA_RACE)
    facts = sound(job_reply(done_job(tuned), "concise"))
    assert facts["tune"] == "BLOCK=512"
    assert 'tune={"BLOCK": 512}' in facts["next"]


def test_home_of_a_report_is_not_told() -> None:
    hardware = HardwareCounters(
        launches=(COUNTED,),
        provenance=Provenance.MEASURED,
        report_path="/home/ada/.kopt/reports/x/profile.ncu-rep",
        log_path="/home/ada/.kopt/reports/x/ncu.txt",
    )
    reply = job_reply(done_job(profile(hardware=hardware)), "full")
    assert sound(reply, PAGE_TOKENS)["hardware_counters"]["report"] == "x/profile.ncu-rep"
    assert "ada" not in text_of(reply)


def test_failed_execution_still_names_its_status_and_what_to_do() -> None:
    result = profile(status=Status.DATA_RACE, measured=None, hardware=None)
    facts = sound(job_reply(done_job(result), "concise"))
    assert facts["status"] == "data_race"
    assert "barrier" in facts["what_to_do"]
    assert "check_correctness" in facts["next"]
