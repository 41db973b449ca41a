"""What costs time is named, with its numbers and its line; what costs nothing is not."""

from collections.abc import Callable

import pytest

from kopt.config.settings import Settings
from kopt.kernels.families import FAMILIES
from kopt.kernels.profile_result import ProfileResult, Suspect, SuspectName
from kopt.kernels.status import Status
from kopt.tools.profiling.stage import ProfileRequest, profile_candidate
from kopt.tools.profiling.suspect_words import SUSPECTS, words_of
from support.machine_cases import ARCH, HEAD, followed_kernel

pytestmark = pytest.mark.slow  # a compile and a run each

FIRST_LINE = HEAD.count("\n") + 2
"""Line of a candidate that the first line of a body is."""
COPY = """const uint4* from = reinterpret_cast<const uint4*>(input) + blockIdx.x * (H / 8);
uint4* to = reinterpret_cast<uint4*>(out) + blockIdx.x * (H / 8);
for (int i = threadIdx.x; i < H / 8; i += 256) to[i] = from[i];"""
NARROW = """float sum = 0;
for (int i = threadIdx.x; i < H; i += 256) {
  sum += __bfloat162float(input[blockIdx.x * H + i]);
  out[blockIdx.x * H + i] = __float2bfloat16(sum);
}"""
STRIDED = """const int first = threadIdx.x * (H / 256);
for (int i = 0; i < H / 256; ++i)
  out[blockIdx.x * H + first + i] = input[(first + i) * 8 + blockIdx.x];"""
AGAIN = """const volatile unsigned short* from = reinterpret_cast<const unsigned short*>(input);
float sum = 0;
for (int pass = 0; pass < 20; ++pass)
#pragma unroll 1
  for (int i = threadIdx.x; i < H; i += 256)
    sum = sum * 0.5f + from[blockIdx.x * H + i];
out[threadIdx.x] = __float2bfloat16(sum);"""
CONFLICTS = """__shared__ float tile[256 * 32];
float sum = 0;
#pragma unroll 1
for (int i = 0; i < 200; ++i) {
  tile[(threadIdx.x * 32 + i) % 8192] = sum;
  sum += tile[(threadIdx.x * 32 + 7 * i) % 8192];
}
out[threadIdx.x] = __float2bfloat16(sum);"""
BARRIERS = """float z = 1;
#pragma unroll 1
for (int i = 0; i < 400; ++i) {
  if (threadIdx.x < 32) z = fmaf(z, 0.999f, 1.0f);
  __syncthreads();
}
out[threadIdx.x] = __float2bfloat16(z);"""
ARITHMETIC = """float z = __bfloat162float(input[threadIdx.x]);
#pragma unroll 1
for (int i = 0; i < 4000; ++i) z = fmaf(z, 0.999f, 1.0f);
out[threadIdx.x] = __float2bfloat16(z);"""
SPILLED = """volatile float kept[64];
#pragma unroll 1
for (int i = 0; i < 2000; ++i) kept[i % 64] = kept[(i * 7) % 64] + 1.0f;
out[threadIdx.x] = __float2bfloat16(kept[threadIdx.x % 64]);"""
LONG = (
    "float z = __bfloat162float(input[threadIdx.x]);\n"
    + "\n".join(f"z = fmaf(z, z, {place}.5f);" for place in range(3000))
    + "\nout[threadIdx.x] = __float2bfloat16(z);"
)

Profiled = Callable[[str], ProfileResult]


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Profiled:
    """Return the profile of the kernel with a body, which nothing counts."""
    settings = Settings(tmp_path_factory.mktemp("home"))
    known: dict[str, ProfileResult] = {}

    def profile(body: str) -> ProfileResult:
        if body not in known:
            case = followed_kernel(body, settings).case
            known[body] = profile_candidate(ProfileRequest(case, ARCH), settings)
        return known[body]

    return profile


def found_in(profile: ProfileResult, name: SuspectName) -> Suspect:
    """Return the suspect of this name; fails where it is none."""
    found = {suspect.name: suspect for suspect in profile.suspects}
    assert name in found, list(found)
    return found[name]


@pytest.mark.parametrize(
    ("name", "body", "line"),
    [
        ("memory_latency", NARROW, 2),
        ("narrow_access", NARROW, 2),
        ("uncoalesced_access", STRIDED, 2),
        ("repeated_reads", AGAIN, 5),
        ("bank_conflicts", CONFLICTS, 4),
        ("barriers", BARRIERS, 4),
        ("instruction_issue", ARITHMETIC, 2),
        ("spills", SPILLED, 2),
    ],
)
def test_what_costs_time_is_named_with_its_gain_and_its_line(
    name: SuspectName, body: str, line: int, profiled: Profiled
) -> None:
    profile = profiled(body)
    found = found_in(profile, name)
    assert profile.estimate is not None
    assert 0.05 * profile.estimate.latency_us <= found.gain_us < profile.estimate.latency_us
    assert found.line in (FIRST_LINE + line, FIRST_LINE + line + 1)


def test_few_blocks_are_named_with_the_sms_of_the_gpu(profiled: Profiled) -> None:
    assert (
        "8 blocks of 256 threads for 132 SMs"
        in found_in(profiled(NARROW), "few_blocks").evidence[0]
    )


def test_code_that_is_gone_through_once_is_waited_for(profiled: Profiled) -> None:
    assert found_in(profiled(LONG), "code_fetch").gain_us > 0.1


def test_wide_copy_has_no_trait_that_could_be_taken_away(profiled: Profiled) -> None:
    traits = [one.name for one in profiled(COPY).suspects if not one.is_limit]
    assert set(traits) <= {"few_blocks"}


def test_the_largest_gain_comes_first(profiled: Profiled) -> None:
    gains = [suspect.gain_us for suspect in profiled(NARROW).suspects]
    assert len(gains) > 2
    assert gains == sorted(gains, reverse=True)


def test_every_part_above_a_tenth_is_a_suspect(profiled: Profiled) -> None:
    for body in (NARROW, ARITHMETIC, CONFLICTS, COPY):
        profile = profiled(body)
        estimate = profile.estimate
        assert estimate is not None
        names = {suspect.name for suspect in profile.suspects}
        if estimate.part_us("launch") > 0.1 * estimate.latency_us:
            assert "launch_latency" in names
        if estimate.part_us("waiting") > 0.1 * estimate.latency_us:
            assert names - {"launch_latency"}


def test_one_launch_is_not_told_to_be_fused() -> None:
    one, several = words_of("launch_latency", 1), words_of("launch_latency", 2)
    assert "pass_fusion" not in one.families
    assert "little is left" in one.statement
    assert "pass_fusion" in several.families


def test_every_advised_family_exists() -> None:
    assert {family for words in SUSPECTS.values() for family in words.families} <= set(FAMILIES)


def test_rows_of_a_table_are_profiled_without_suspects(settings: Settings) -> None:
    case = followed_kernel(COPY, settings).case
    result = profile_candidate(ProfileRequest(case, ARCH, suspects=False), settings)
    assert (result.status, result.suspects) == (Status.PASSED, ())
    assert result.estimate is not None and result.bottleneck is not None
