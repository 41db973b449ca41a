"""Building programs: the cache, two builders at once, missing compilers, limits of a plan."""

import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from kopt.config.errors import SetupError
from kopt.kernels.plan import Argument, Launch, Scratch
from kopt.kernels.status import Status
from kopt.tools.sim.program import build_program
from kopt.tools.sim.program_facts import SimProgram
from kopt.tools.sim.unit import dynamic_shared_names, make_unit, module_variables
from support.sim_run import Sim, SimCase, int32, line_of

SOURCE = 'extern "C" __global__ void k(int* out) { out[threadIdx.x] = NUMBER; }'


def _case(number: int) -> SimCase:
    return SimCase(SOURCE, outputs={"out": np.zeros(32, np.int32)}, defines={"NUMBER": number})


def _folder(sim: Sim, case: SimCase) -> Path:
    program = build_program(case.program, sim.settings)
    assert isinstance(program, SimProgram)
    return Path(program.executable).parent


def test_a_program_is_built_once(sim: Sim) -> None:
    folder = _folder(sim, _case(101))
    before = (folder / "program").stat().st_ino
    assert _folder(sim, _case(101)) == folder
    assert (folder / "program").stat().st_ino == before
    assert _folder(sim, _case(102)) != folder
    assert sorted(path.name for path in folder.iterdir()) == [
        "manifest.json",
        "program",
        "program.json",
    ]


@pytest.mark.slow  # two programs for each
@pytest.mark.parametrize("damage", ["truncated", "empty", "no program", "no facts", "not JSON"])
def test_a_broken_cache_entry_is_built_again(sim: Sim, damage: str) -> None:
    number = 200 + len(damage)
    folder = _folder(sim, _case(number))
    facts = folder / "program.json"
    match damage:
        case "truncated":
            facts.write_bytes(facts.read_bytes()[:40])
        case "empty":
            facts.write_bytes(b"")
        case "no program":
            (folder / "program").unlink()
        case "no facts":
            facts.unlink()
        case _:
            facts.write_text('{"entries": {}}')
    assert sim.outputs(_case(number))["out"].tolist() == [number] * 32


@pytest.mark.slow  # three processes
def test_processes_may_build_the_same_program_at_once(sim: Sim) -> None:
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(build_program, _case(300).program, sim.settings) for _ in range(3)]
        found = [job.result(60) for job in jobs]
    assert found == [build_program(_case(300).program, sim.settings)] * 3
    assert sim.outputs(_case(300))["out"].tolist() == [300] * 32


def test_a_missing_compiler_is_a_setup_error(sim: Sim, tmp_path: Path) -> None:
    missing = sim.with_(settings=replace(sim.settings, gxx="g++-of-nowhere", home=tmp_path))
    with pytest.raises(SetupError, match=r"g\+\+-of-nowhere"):
        missing.execute(_case(1))


# No folder mode stops root, under whom this can only be run as another user.
@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_home_is_a_setup_error(sim: Sim, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(SetupError, match="KOPT_HOME"):
        sim.with_(settings=replace(sim.settings, home=tmp_path / "home")).execute(_case(1))


def test_what_gxx_refuses_is_unsupported_with_its_line_and_caret(sim: Sim) -> None:
    source = SOURCE.replace("NUMBER;", "1;\n  auto x = __nv_invented(out);\n")
    found = sim.fault(
        SimCase(source, outputs={"out": np.zeros(32, np.int32)}), Status.UNSUPPORTED_ON_SIM
    )
    assert found.line == line_of(source, "__nv_invented")
    assert "__nv_invented" in found.message
    assert found.excerpt is not None
    assert found.excerpt.splitlines()[1].strip() == "^"


def _launch(**changes: object) -> Launch:
    fields = {"kernel": "k", "grid": (1, 1, 1), "block": (32, 1, 1), "line": 7}
    arguments = (Argument(kind="tensor", name="out"),)
    return Launch.model_validate({**fields, "arguments": arguments, **changes})


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        (_launch(grid=(1 << 20, 2, 1)), "blocks in all"),
        (_launch(grid=(200, 1, 1), block=(1024, 1, 1), cooperative=True), "resident together"),
        (_launch(grid=(2, 2, 1), cluster=(1, 2, 1)), "along x only"),
        (_launch(arguments=tuple(int32(f"a{n}", n) for n in range(65))), "65 arguments"),
    ],
)
def test_plans_beyond_the_simulator_are_unsupported(sim: Sim, launch: Launch, words: str) -> None:
    case = SimCase(SOURCE, outputs={"out": np.zeros(32, np.int32)}, launches=(launch,))
    assert words in sim.fault(case, Status.UNSUPPORTED_ON_SIM).message


def test_too_many_buffers_are_unsupported(sim: Sim) -> None:
    scratch = tuple(Scratch(name=f"s{n}", dtype="int32", shape=(1,)) for n in range(1024))
    case = SimCase(SOURCE, outputs={"out": np.zeros(32, np.int32)}, scratch=scratch)
    case = replace(case, launches=(_launch(),))
    assert "this plan has 1025" in sim.fault(case, Status.UNSUPPORTED_ON_SIM).message


@pytest.mark.slow  # two programs
def test_the_last_of_1024_buffers_is_one_like_the_first(sim: Sim) -> None:
    scratch = tuple(Scratch(name=f"s{n}", dtype="int32", shape=(32,)) for n in range(1023))
    source = """extern "C" __global__ void k(int* out, int* last) {
      last[threadIdx.x] = threadIdx.x; out[threadIdx.x] = last[threadIdx.x] + 1; }"""
    arguments = (Argument(kind="tensor", name="out"), Argument(kind="scratch", name="s1022"))
    case = SimCase(source, outputs={"out": np.zeros(32, np.int32)}, scratch=scratch)
    right = replace(case, launches=(_launch(arguments=arguments),))
    assert sim.outputs(right)["out"].tolist() == list(range(1, 33))
    beyond = replace(right, source=source.replace("last[threadIdx.x] =", "last[threadIdx.x + 1] ="))
    fault = sim.fault(beyond, Status.OUT_OF_BOUNDS)
    assert "`s1022`" in fault.message


@pytest.mark.parametrize("elements", [15 << 30, 1 << 45])
def test_scratch_that_this_machine_cannot_hold_is_unsupported(sim: Sim, elements: int) -> None:
    scratch = (Scratch(name="terms", dtype="float32", shape=(elements,)),)
    case = SimCase(SOURCE, outputs={"out": np.zeros(32, np.int32)}, scratch=scratch)
    found = sim.fault(replace(case, launches=(_launch(),)), Status.UNSUPPORTED_ON_SIM)
    assert "`terms` alone" in found.message


def test_a_hundred_launches_run_one_after_another(sim: Sim) -> None:
    source = """extern "C" __global__ void first(int* out) { out[threadIdx.x] = 0; }
    extern "C" __global__ void more(int* out) { out[threadIdx.x] += 1; }"""
    launches = (_launch(kernel="first"), *(_launch(kernel="more") for _ in range(99)))
    case = SimCase(source, outputs={"out": np.zeros(32, np.int32)}, launches=launches)
    assert sim.outputs(case)["out"].tolist() == [99] * 32


def test_sixty_four_arguments_arrive(sim: Sim) -> None:
    names = [f"a{n}" for n in range(63)]
    total = " + ".join(f"{n + 1} * {name}" for n, name in enumerate(names))
    parameters = ", ".join(f"int {name}" for name in names)
    case = SimCase(
        f'extern "C" __global__ void k(int* out, {parameters}) {{ out[0] = {total}; }}',
        outputs={"out": np.zeros(1, np.int32)},
        scalars=tuple(int32(name, number) for number, name in enumerate(names)),
        block=(1, 1, 1),
    )
    assert sim.outputs(case)["out"].tolist() == [sum(n * (n + 1) for n in range(63))]


def test_the_unit_keeps_the_candidates_lines() -> None:
    source = "// one\nextern __shared__ alignas(16) float a[];\r\nint three;\n"
    unit = make_unit(source, {"B": 2, "A": 1}, ("k",)).split("\n")
    assert unit[:3] == ["#define A 1", "#define B 2", '#line 1 "candidate.cu"']
    assert unit[3] == "// one"
    assert "alignas(16)" in unit[4] and "KOPT_SIM_EXTERN_SHARED" in unit[4]
    assert unit[5] == "int three;"


def test_declarations_are_found_in_the_source() -> None:
    source = """
    extern __shared__ __align__(16) float a[];
    namespace n { extern __shared__ unsigned char b[]; }
    __device__ int counter = 0; static __device__ float table[4]; __device__ const int c = 3;
    __device__ constexpr float d[2] = {1, 2}; __device__ float f(float x) { return x; }
    """
    assert dynamic_shared_names(source) == {"a", "b"}
    assert module_variables(source) == {"counter": 4, "table": 4}
