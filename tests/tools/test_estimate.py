"""An estimate is the time of the machine code, held to what the simulator counted."""

from dataclasses import replace

import pytest

from kopt.config.errors import SetupError, ToolError
from kopt.config.gpu_specs import load_gpus
from kopt.config.settings import Settings
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.counters import BufferTraffic, ExecutionCounters
from kopt.kernels.plan import Scratch
from kopt.kernels.status import Provenance, Status
from kopt.kernels.time_estimate import LaunchEstimate, PartName, PartTimes
from kopt.tools.cuda.toolchain import find_toolchain
from kopt.tools.estimate.counted_floor import nearest_way
from kopt.tools.estimate.machine import stage as machine_stage
from kopt.tools.estimate.machine.stage import FollowedPlan
from kopt.tools.estimate.machine.timing_constants import Clocks
from kopt.tools.estimate.stage import dominant_part, estimate_build, find_build
from kopt.tools.facts.profile_facts import interval_words
from support.machine_cases import FollowedKernel, followed_kernel

COPY = """
  const uint4* from = reinterpret_cast<const uint4*>(input);
  uint4* to = reinterpret_cast<uint4*>(out);
  for (int i = threadIdx.x; i < H / 8; i += 256) to[blockIdx.x * (H / 8) + i] = from[i];
"""
UNTIL_LARGE = """
  float z = __bfloat162float(input[threadIdx.x]);
  for (int i = 0; z < 1e30f; i += 256) {
    z += __bfloat162float(input[i + threadIdx.x]) * z;
    out[i + threadIdx.x] = __float2bfloat16(z);
  }
"""


def counted(load_bytes: int, store_bytes: int = 0) -> ExecutionCounters:
    """Return counters of the input, and of out."""
    return ExecutionCounters(
        traffic={
            "input": BufferTraffic(load_bytes=load_bytes, store_bytes=0),
            "out": BufferTraffic(load_bytes=0, store_bytes=store_bytes),
        }
    )


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> FollowedKernel:
    return followed_kernel(COPY, Settings(tmp_path_factory.mktemp("home")))


def launch(us: float, parts_us: PartTimes) -> LaunchEstimate:
    """Return a launch with these parts, and 1 us for an empty one."""
    usual: PartTimes = {"launch": 1.0, "waiting": 0.0, "dram": 0.0, "issue": 0.0}
    return LaunchEstimate(kernel="k", latency_us=us, parts_us=usual | parts_us)


def test_time_lies_in_its_interval_and_is_labelled(copy: FollowedKernel) -> None:
    found = copy.estimate()
    assert found.provenance is Provenance.ESTIMATED
    least, most = found.interval_us
    assert most is not None
    assert least < found.latency_us < most
    assert 0 < found.resolution < found.interval_rate < 1


def test_switch_on_data_leaves_the_interval_open(settings: Settings) -> None:
    functions = ("sqrtf", "exp2f", "sinf", "log2f", "tanhf", "cosf", "rsqrtf", "expf")
    cases = "".join(f"case {n}: x = {name}(x); break;\n" for n, name in enumerate(functions))
    body = f"""
  float x = __bfloat162float(input[threadIdx.x]);
  switch (int(x)) {{
    {cases}
  }}
  out[threadIdx.x] = __float2bfloat16(x);
"""
    found = followed_kernel(body, settings).estimate()
    assert found.interval_us[1] is None
    assert "goes where no code is known" in found.missing[0]
    assert interval_words(found).endswith("us or longer at 90%")


def test_launch_busiest_unit_and_waiting_make_up_the_time(copy: FollowedKernel) -> None:
    (one,) = copy.estimate().launches
    parts = dict(one.parts_us)
    beside = parts.pop("launch") + parts.pop("waiting")
    assert beside + max(parts.values()) == pytest.approx(one.latency_us)


def test_bytes_that_were_counted_take_their_time_where_no_warp_was_seen_to_ask(
    copy: FollowedKernel,
) -> None:
    large = copy.model.model_copy(
        update={
            "tensors": tuple(
                one.model_copy(update={"read_bytes": one.read_bytes * 2000})
                for one in copy.model.tensors
            )
        }
    )
    read = sum(one.read_bytes for one in large.tensors)
    bulk = replace(copy.way.launches[0].path.code[0], operation="UBLKCP")
    path = replace(copy.way.launches[0].path, code=(*copy.way.launches[0].path.code, bulk))
    way = FollowedPlan((replace(copy.way.launches[0], path=path),))
    held = replace(copy, model=large, way=way).estimate(counted(read))
    floor_us = read / (copy.gpu.dram_bandwidth_gb_s * 1e3)
    assert held.latency_us > floor_us > copy.estimate().latency_us
    assert held.dominant == "dram"
    assert sum(one.latency_us for one in held.launches) == pytest.approx(held.latency_us)


def test_rereads_are_no_work_of_dram(copy: FollowedKernel) -> None:
    asked = round(copy.way.launches[0].path.asked_bytes)
    once, again = counted(asked // 2, asked // 2), counted(asked, 0)
    assert copy.estimate(again).latency_us == copy.estimate(once).latency_us


def _asked(way: tuple[float, FollowedPlan]) -> float:
    return way[0]


HIDDEN = """
  __shared__ unsigned short first;
  if (threadIdx.x == 0) first = reinterpret_cast<const unsigned short*>(input)[blockIdx.x];
  __syncthreads();
  if (first == 12345) {
    out[threadIdx.x] = input[threadIdx.x];
  } else {
#pragma unroll 1
    for (int i = threadIdx.x; i < H; i += 256) out[i] = input[i];
  }
"""


def test_way_that_asks_for_the_counted_bytes_is_followed_whichever_way_data_leads(
    settings: Settings,
) -> None:
    kernel = followed_kernel(HIDDEN, settings)
    ways = (kernel.way, kernel.way.taking_branches())
    few, many = sorted(
        ((sum(one.path.asked_bytes for one in way.launches), way) for way in ways),
        key=_asked,
    )
    assert many[0] > 10 * few[0]
    for asked, way in (few, many):
        found = nearest_way(kernel.way, counted(round(asked)))
        assert found.time_us() == way.time_us()
    assert many[1].time_us() > 2 * few[1].time_us()


def test_work_that_no_way_shows_counts_by_its_bytes(settings: Settings) -> None:
    kernel = followed_kernel(HIDDEN, settings)
    asked = round(kernel.way.launches[0].path.asked_bytes)
    seen, hidden = kernel.estimate(counted(asked)), kernel.estimate(counted(20 * asked))
    assert hidden.latency_us - hidden.part_us("launch") == pytest.approx(
        20 * (seen.latency_us - seen.part_us("launch"))
    )
    assert any("behind branches on data" in text for text in hidden.missing)
    assert seen.missing == ()


def test_fewer_bytes_than_were_followed_make_no_estimate_faster(settings: Settings) -> None:
    kernel = followed_kernel(UNTIL_LARGE, settings)
    asked = round(kernel.way.launches[0].path.asked_bytes)
    assert kernel.estimate(counted(asked // 5)).latency_us == kernel.estimate().latency_us


def test_busiest_sm_keeps_its_time_where_others_have_less_to_do(copy: FollowedKernel) -> None:
    asked = round(copy.way.launches[0].path.asked_bytes)
    assert copy.estimate(counted(asked // 2)).latency_us == copy.estimate().latency_us


def test_way_that_is_cut_is_no_faster_than_the_round_trips_of_its_accesses(
    copy: FollowedKernel,
) -> None:
    launch = copy.way.launches[0]
    cut = FollowedPlan((replace(launch, path=replace(launch.path, is_cut=True)),))
    many = counted(copy.model.read_bytes).model_copy(update={"global_accesses_per_thread": 800.0})
    assert replace(copy, way=cut).estimate(many).latency_us > 100 * 0.4
    assert copy.estimate(many).latency_us < 10


def test_scratch_that_is_zeroed_costs_an_empty_launch(copy: FollowedKernel) -> None:
    sums = Scratch(name="sums", dtype="float32", shape=(8,), init="zero")
    zeroed = replace(copy, plan=copy.plan.model_copy(update={"scratch": (sums,)})).estimate()
    more_us = zeroed.latency_us - copy.estimate().latency_us
    assert more_us == pytest.approx(Clocks().launch_us)
    assert zeroed.part_us("launch") == pytest.approx(2 * Clocks().launch_us)


def test_what_was_not_counted_is_said(copy: FollowedKernel) -> None:
    assert any("counted accesses" in text for text in copy.estimate().missing)
    assert copy.estimate(counted(copy.model.read_bytes)).missing == ()


@pytest.mark.parametrize(
    ("launches", "name"),
    [
        ((launch(1.6, {"dram": 0.6}),), "launch"),
        ((launch(4.0, {"dram": 2.5, "waiting": 0.5}),), "dram"),
        ((launch(4.0, {"dram": 1.0, "issue": 1.5, "waiting": 1.5}),), "waiting"),
        ((launch(4.0, {"issue": 3.0}), launch(1.5, {"dram": 0.5})), "issue"),
    ],
)
def test_what_the_time_mostly_is_follows_the_rule_of_the_bottleneck(
    launches: tuple[LaunchEstimate, ...], name: PartName
) -> None:
    assert dominant_part(launches) == name


def test_without_nvdisasm_it_says_what_to_install(
    copy: FollowedKernel, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind = replace(find_toolchain(settings), nvdisasm=None)
    monkeypatch.setattr(machine_stage, "find_toolchain", lambda _: blind)  # pyright: ignore
    with pytest.raises(SetupError, match=r"needs nvdisasm.*pip install 'kopt-mcp"):
        estimate_build(copy.build, copy.plan, copy.gpu, (copy.model, None), settings)


def test_missing_cubin_is_a_tool_error(copy: FollowedKernel) -> None:
    compiled = CompileResult(
        status=Status.PASSED, kernel="silu", candidate="c", builds=(copy.build,)
    )
    with pytest.raises(ToolError, match="no cubin of silu for sm_100a"):
        find_build(compiled, copy.plan, load_gpus()["B200"])
