"""Kernels are timed by what their machine code does: the ways in which counts were fooled."""

import pytest

from kopt.config.settings import Settings
from kopt.tools.estimate.machine.lanes import ALL, Lanes, filled
from kopt.tools.estimate.machine.moves import Place
from kopt.tools.estimate.machine.warp_path import WarpPath
from kopt.tools.estimate.stage import RESOLUTION
from support.machine_cases import followed, instruction

pytestmark = pytest.mark.slow  # every kernel is compiled and its machine code followed
COPY = """
  const uint4* from = reinterpret_cast<const uint4*>(input);
  uint4* to = reinterpret_cast<uint4*>(out);
  for (int i = threadIdx.x; i < H / 8; i += 256) to[blockIdx.x * (H / 8) + i] = from[i];
"""


def _us(body: str, settings: Settings) -> float:
    found = followed(body, settings)
    assert not found.launches[0].path.is_cut
    return found.time_us()


@pytest.fixture(scope="module")
def base_us(tmp_path_factory: pytest.TempPathFactory) -> float:
    return _us(COPY, Settings(tmp_path_factory.mktemp("home")))


def test_loop_is_followed_as_often_as_it_runs(settings: Settings) -> None:
    launch = followed(COPY, settings).launches[0]
    visits = launch.path.followed[0][0]
    loads = [v for v in visits if launch.path.code[v.index].operation == "LDG"]
    assert len(loads) == 14336 // 8 // 256
    assert all(v.access is not None and len(v.access.sectors) == 16 for v in loads)


def test_arithmetic_that_is_executed_counts(base_us: float, settings: Settings) -> None:
    loop = """
  float z = __bfloat162float(input[threadIdx.x]);
#pragma unroll 1
  for (int i = 0; i < 500; ++i) z = fmaf(z, 0.999f, 1.0f);
  out[threadIdx.x] = __float2bfloat16(z);
"""
    assert _us(COPY + loop, settings) > base_us + 5


def test_code_that_is_never_executed_does_not(base_us: float, settings: Settings) -> None:
    dead = "  if (H == 3) {\n" + "".join(
        f"    to[{k} * H + threadIdx.x] = from[{k} * H + threadIdx.x];\n" for k in range(64)
    )
    assert _us(f"{COPY}{dead}  }}\n", settings) == pytest.approx(base_us, rel=2 * RESOLUTION)


def test_bank_conflicts_take_longer(settings: Settings) -> None:
    def body(stride: int) -> str:
        return f"""
  __shared__ float tile[256 * 32];
  float sum = 0;
#pragma unroll 1
  for (int i = 0; i < 40; ++i) {{
    tile[(threadIdx.x * {stride} + i) % 8192] = sum;
    __syncthreads();
    sum += tile[(threadIdx.x * {stride} + 7 * i) % 8192];
    __syncthreads();
  }}
  out[threadIdx.x] = __float2bfloat16(sum);
"""

    assert _us(body(32), settings) > 1.5 * _us(body(1), settings)


def test_load_before_a_barrier_is_not_waited_for_there(settings: Settings) -> None:
    def body(first: str, second: str) -> str:
        return f"""
  __shared__ float one;
  {first}
  if (threadIdx.x == 0) one = 1.0f;
  __syncthreads();
  {second}
  const __nv_bfloat16 x = input[blockIdx.x * H + threadIdx.x];
  out[threadIdx.x] = w + x + __float2bfloat16(one);
"""

    weight = "const __nv_bfloat16 w = input[99 * H + threadIdx.x];"
    before, after = body(weight, ""), body("", weight)
    assert _us(before, settings) == pytest.approx(_us(after, settings), rel=0.05)


def test_way_that_does_not_end_is_cut_and_said_so(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kopt.tools.estimate.machine.launch_path.MAX_VISITS", 2000)
    endless = f"{COPY}  for (volatile int i = 0; i < 1000000; ++i) {{}}\n"
    path = followed(endless, settings).launches[0].path
    assert path.is_cut
    assert len(path.followed[0][0]) == 2000


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_loop_over_the_size_of_the_block_runs_as_often_as_it_does(
    arch: str, settings: Settings
) -> None:
    body = """
#pragma unroll 1
  for (int i = threadIdx.x; i < H; i += blockDim.x) out[i] = input[i];
"""
    launch = followed(body, settings, arch).launches[0]
    stores = [v for v in launch.path.followed[0][0] if launch.path.code[v.index].operation == "STG"]
    assert len(stores) == 14336 // 256
    assert not launch.path.has_open_loop


def test_loop_that_data_ends_is_told(settings: Settings) -> None:
    body = """
  int n = 0;
  for (float z = __bfloat162float(input[threadIdx.x]); z < 100.0f; z = z * z + 1.0f) ++n;
  out[threadIdx.x] = __int2bfloat16_rn(n);
"""
    assert followed(body, settings).launches[0].path.has_open_loop
    assert not followed(COPY, settings).launches[0].path.has_open_loop


def test_loop_counter_beside_a_narrow_spill_is_still_known(settings: Settings) -> None:
    body = """
  volatile short narrow[4];
  volatile int count[4];
  narrow[0] = __bfloat162short_rz(input[threadIdx.x]);
  for (count[1] = 0; count[1] < 9; count[1] = count[1] + 1) {
    narrow[1] = narrow[0];
    out[count[1] * H + threadIdx.x] = __short2bfloat16_rn(narrow[1]);
  }
"""
    launch = followed(body, settings).launches[0]
    stores = [v for v in launch.path.followed[0][0] if launch.path.code[v.index].operation == "STG"]
    assert len(stores) == 9
    assert not launch.path.has_open_loop


def test_what_all_threads_ask_for_is_known_from_those_that_were_followed(
    settings: Settings,
) -> None:
    assert followed(COPY, settings).launches[0].path.asked_bytes == 2 * 8 * 14336 * 2


@pytest.mark.parametrize("arch", ["sm_100a", "sm_120a"])
def test_blackwell_code_is_followed_as_well(arch: str, settings: Settings) -> None:
    launch = followed(COPY, settings, arch).launches[0]
    visits = launch.path.followed[0][0]
    assert sum(launch.path.code[v.index].operation == "LDG" for v in visits) == 7
    assert not launch.path.is_cut
    assert not launch.path.has_open_loop


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_loop_over_a_quotient_runs_as_often_as_it_says(arch: str, settings: Settings) -> None:
    body = """
  const unsigned n = unsigned(H * 5) / unsigned(H / 4 + blockIdx.x);
#pragma unroll 1
  for (unsigned i = 0; i < n; ++i) out[i * H + threadIdx.x] = input[i];
"""
    launch = followed(body, settings, arch).launches[0]
    visits = launch.path.followed[0][0]
    assert sum(launch.path.code[v.index].operation == "STG" for v in visits) == 20


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_what_is_loaded_is_not_what_stood_there_before(arch: str, settings: Settings) -> None:
    body = """
  __shared__ int n[2];
  if (threadIdx.x < 2) n[threadIdx.x] = input[threadIdx.x] > __float2bfloat16(0.5f);
  __syncthreads();
  out[n[threadIdx.x & 1] * 4096 + threadIdx.x] = input[0];
"""
    launch = followed(body, settings, arch).launches[0]
    loads = [one for one in launch.path.code if one.operation in ("LDS", "LDG")]
    assert loads
    assert all("[" not in one.operands[0] for one in loads)


def test_function_that_is_called_counts(base_us: float, settings: Settings) -> None:
    called = """
  struct Slow {
    static __device__ __noinline__ int sum(int n, const __nv_bfloat16* from) {
      return n < 2 ? int(from[n]) : sum(n - 1, from) + sum(n - 2, from);
    }
  };
  out[threadIdx.x] = __int2bfloat16_rn(Slow::sum(8, input));
"""
    assert _us(COPY + called, settings) > base_us + 3


@pytest.mark.parametrize("text", ["BRX R2", "RET.REL.NODEC R2,0x0", "CALL.ABS.NOINC R2"])
def test_way_by_a_register_that_is_not_known_is_cut(text: str) -> None:
    code = (instruction(text), instruction("EXIT", address=16))
    place = Place((filled(0), filled(0), filled(0)), (0, 0, 0))
    assert WarpPath(code, Lanes({}), place, ALL).follow().is_cut


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a", "sm_120a"])
def test_switch_on_an_argument_goes_to_its_case(arch: str, settings: Settings) -> None:
    cases = ("x * 2", "sqrtf(x)", "exp2f(x)", "sinf(x)", "x + 3", "log2f(x)", "tanhf(x)", "cosf(x)")
    switch = "".join(f"case {n}: x = {case}; break;\n" for n, case in enumerate(cases))
    body = f"""
  float x = __bfloat162float(input[threadIdx.x]);
  switch (H - {14336 - 5}) {{
    {switch}
  }}
  out[threadIdx.x] = __float2bfloat16(x);
"""
    path = followed(body, settings, arch).launches[0].path
    run = [path.code[visit.index] for visit in path.followed[0][0] if visit.active]
    assert not path.is_cut
    assert any(one.operation in ("BRX", "BRXU") for one in path.code)
    assert {"LG2"} == {name for one in run if one.operation == "MUFU" for name in one.modifiers}


@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90a"])
def test_asynchronous_copy_reads_where_it_copies_from(arch: str, settings: Settings) -> None:
    body = """
  __shared__ uint4 tile[256];
  const uint4* from = reinterpret_cast<const uint4*>(input);
  const unsigned to = __cvta_generic_to_shared(tile + threadIdx.x);
#pragma unroll 1
  for (int i = 0; i < 7; ++i)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :: "r"(to), "l"(from + i * 256 + threadIdx.x));
  asm volatile("cp.async.wait_all;");
  reinterpret_cast<uint4*>(out)[threadIdx.x] = tile[threadIdx.x];
"""
    launch = followed(body, settings, arch).launches[0]
    sectors = {
        sector
        for visit in launch.path.followed[0][0]
        if launch.path.code[visit.index].operation == "LDGSTS" and visit.access is not None
        for sector in visit.access.sectors
    }
    assert len(sectors) == 7 * 16


def test_asynchronous_copy_that_is_waited_for_takes_as_long_as_a_load(settings: Settings) -> None:
    def body(copy: str) -> str:
        return f"""
  __shared__ unsigned tile[256];
  const unsigned* from = reinterpret_cast<const unsigned*>(input);
  const unsigned to = __cvta_generic_to_shared(tile + threadIdx.x);
  unsigned sum = 0;
#pragma unroll 1
  for (int i = threadIdx.x; i < H; i += 256) {{
    {copy}
    sum = __popc(sum + tile[threadIdx.x]);
  }}
  out[threadIdx.x] = __int2bfloat16_rn(sum);
"""

    loaded = _us(body("*(volatile unsigned*)&tile[threadIdx.x] = from[i];"), settings)
    copied = """asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(from + i));
    asm volatile("cp.async.wait_all;" ::: "memory");"""
    assert _us(body(copied), settings) == pytest.approx(loaded, rel=0.1)


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("function", ["__fdiv_rn(x, y)", "__fsqrt_rn(x)", "__frcp_rn(x)"])
def test_the_slow_path_of_a_rounded_operation_is_hardly_ever_taken(
    function: str, arch: str, settings: Settings
) -> None:
    launch = followed(
        f"""
  float x = __bfloat162float(input[threadIdx.x]), y = __bfloat162float(input[blockIdx.x]);
#pragma unroll
  for (int i = 0; i < 8; ++i) x = {function} + 1.0f;
  out[threadIdx.x] = __float2bfloat16(x);
""",
        settings,
        arch,
    ).launches[0]
    path = launch.path
    calls = [v for v in path.followed[0][0] if path.code[v.index].operation == "CALL"]
    assert any(one.operation == "CALL" for one in path.code)  # there is a slow path
    assert calls == []
