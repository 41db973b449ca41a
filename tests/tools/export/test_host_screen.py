"""Sources that are not exported: kopt refuses them, or their host code would run by itself."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.config.time_left import TimeLeft
from kopt.kernels.candidate import Candidate
from kopt.tools.export import host_screen
from kopt.tools.export.exported_kernel import ExportedKernel
from kopt.tools.export.host_screen import refuse_host_code
from kopt.tools.sandbox.ladder import run_sandboxed
from kopt.tools.sandbox.policy import SandboxedRun
from support.exports import exported_sample

pytestmark = pytest.mark.slow  # compiles exports


def with_code(added: str) -> ExportedKernel:
    """Return a sound sample, which has one build, with `added` behind its own code."""
    exported = exported_sample("good_scalar")
    source = f"{exported.candidate.source}\n{added}\n"
    return replace(exported, candidate=Candidate(source, "mine.cu"))


@pytest.mark.parametrize(
    "added",
    [
        'static int started = system("true");',
        "struct Starter { Starter() { abort(); } }; Starter starter;",
        'struct Holder { inline static int value = system("true"); };',
        'template <int N> int late = system("true"); template int late<1>;',
    ],
)
def test_code_that_runs_when_the_library_is_loaded_is_refused(
    added: str, settings: Settings
) -> None:
    with pytest.raises(ToolError, match=r"mine\.cu cannot be exported: it has host code that runs"):
        refuse_host_code(with_code(added), settings)


@pytest.mark.parametrize(
    "added",
    [
        "__attribute__((constructor)) static void begin() {}",
        '#include "/etc/hostname"',
        'asm(".pushsection .init_array");',
    ],
)
def test_what_a_build_of_kopt_refuses_is_not_exported(added: str, settings: Settings) -> None:
    with pytest.raises(ToolError, match=r"mine\.cu cannot be exported: line \d+: "):
        refuse_host_code(with_code(added), settings)


@pytest.mark.parametrize("name", ["good_variants_by_shape", "good_tma_scratch"])
def test_a_sound_kernel_brings_no_host_code_that_runs_by_itself(
    name: str, settings: Settings
) -> None:
    refuse_host_code(exported_sample(name), settings)


def test_builds_of_an_export_are_counted_with_the_time_that_those_ahead_take(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, told = [0.0], list[str]()

    def run(*asked: Any) -> SandboxedRun:
        now[0] += 3.0
        return run_sandboxed(*asked)

    monkeypatch.setattr(host_screen, "run_sandboxed", run)
    monkeypatch.setattr(host_screen, "TimeLeft", partial(TimeLeft, clock=lambda: now[0]))
    refuse_host_code(exported_sample("good_variants_by_shape"), settings, told.append)
    assert told == [
        "compiling 1 of 2 builds, to look at their host code",
        "compiling 2 of 2 builds, to look at their host code, about 3 s left",
    ]


def test_constants_are_no_host_code(settings: Settings) -> None:
    constants = "constexpr float kTable[2] = {1.0f, 2.0f};\n__constant__ float shared_table[2];"
    refuse_host_code(with_code(constants), settings)


def test_a_source_that_does_not_compile_says_so(settings: Settings) -> None:
    with pytest.raises(ToolError, match=r"an export of mine\.cu does not compile: .*nosuch"):
        refuse_host_code(with_code("int f() { return nosuch; }"), settings)
