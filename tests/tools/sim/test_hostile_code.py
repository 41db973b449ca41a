"""Code that tries to get out of the simulator, or to take it over."""

import subprocess
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import pytest

from kopt.config.errors import SetupError
from kopt.kernels.status import Status
from kopt.tools.sandbox.ladder import available_level
from support.sandbox_level import LEVELS
from support.sim_run import Sim, SimCase, line_of

KERNEL = 'extern "C" __global__ void k(float* out) {\n  BODY\n  out[threadIdx.x] = 1;\n}'


def _case(before: str, body: str = "") -> SimCase:
    source = f"{before}\n{KERNEL.replace('BODY', body)}"
    return SimCase(source, outputs={"out": np.zeros(32, np.float32)})


@pytest.mark.parametrize(
    ("before", "body", "words"),
    [
        ('extern "C" int system(const char*);', 'system("id");', "'system'"),
        ('extern "C" int puts(const char*);', 'puts("x");', "'puts'"),
        ("", "out[0] = (float)(long)new int[4];", "'_Znam'"),
        ("volatile float seed = 2; float x = __expf(seed);", "", "'.init_array'"),
        ("volatile int a;\n__attribute__((constructor)) void f() { a = 1; }", "", "'.init_array'"),
        ("volatile int a;\n__attribute__((destructor)) void f() { a = 1; }", "", "'.fini_array'"),
        ('__attribute__((section(".init"), used)) void early() {}', "", "'.init'"),
        (
            "void early() {}\n"
            '__attribute__((section(".preinit_array"), used)) void (*at)() = early;',
            "",
            "'.preinit_array'",
        ),
        (
            'extern "C" { static void* pick() { return 0; }\n'
            'int f() __attribute__((ifunc("pick"))); }',
            "f();",
            "chosen while the program is loaded",
        ),
        ('extern "C" void __tsan_read4(void*) {}', "", "'__tsan_read4'"),
        ('extern "C" void kopt_sim_atomic(void*) {}', "", "conflicting"),
        ('int f() __asm__("a:\\n syscall\\nb");\nint f() { return 1; }', "f();", "assembled"),
        ("__device__ int count;", "atomicAdd(&count, 1);", "`count` keeps its value"),
        ("static __device__ volatile int count;", "count = 1;", "`count` keeps its value"),
    ],
)
def test_ways_around_the_runtime_are_refused(sim: Sim, before: str, body: str, words: str) -> None:
    found = sim.fault(_case(before, body), Status.UNSUPPORTED_ON_SIM)
    assert words in found.message


def test_inline_assembly_behind_a_macro_gives_its_line(sim: Sim) -> None:
    case = _case("#define JOIN(a, b) a##b\n#define GO(x) JOIN(as, m) volatile(x)", 'GO("syscall");')
    found = sim.fault(case, Status.UNSUPPORTED_ON_SIM)
    assert "inline assembly" in found.message
    assert found.line == line_of(case.source, 'GO("syscall")')


def test_names_of_the_c_library_stay_the_candidates_own(sim: Sim) -> None:
    before = """extern "C" {
    __attribute__((used)) int printf(const char*, ...) { return 0; }
    __attribute__((used)) int fork() { return 7; }
    __attribute__((used)) int main() { return 1; }
    __attribute__((used)) void* mmap(void*, unsigned long, int, int, int, long) { return 0; }
    }"""
    assert sim.outputs(_case(before, "fork();"))["out"].tolist() == [1] * 32


@pytest.mark.slow  # two programs
def test_a_wild_call_is_a_crash(sim: Sim) -> None:
    for target in ("(void (*)())16", "(void (*)())out"):
        found = sim.fault(_case("", f"(({target}))();"), Status.CRASH)
        assert "signal 11" in found.message


LOCKED = """
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lockdown.h"
static void refused(int) { _exit(42); }
static int attempt(int what) {
  char* const none[] = {nullptr};
  switch (what) {
    case 0: return open("/etc/passwd", O_RDONLY);
    case 1: return socket(AF_INET, SOCK_STREAM, 0);
    case 2: return (int)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);  // fork() may block signals first
    case 3: return execve("/bin/true", none, none);
    case 4: return (int)write(1, "x", 1);
    case 5: return kill(getppid(), SIGKILL);
    case 6: return (int)syscall(SYS_openat, AT_FDCWD, "/tmp/x", O_CREAT | O_WRONLY, 0600);
    default: return 0;
  }
}
int main() {
  for (int what = 0; what < 8; ++what) {
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGSYS, refused);
      kopt_sim::lock_down();
      attempt(what);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("%d ", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
  }
}
"""


def test_a_locked_process_has_no_system_call_of_use(sim: Sim, tmp_path: Path) -> None:
    (tmp_path / "main.cpp").write_text(LOCKED)
    with as_file(files("kopt.tools.sim") / "runtime") as runtime:
        command = [sim.settings.gxx, "-std=c++17", f"-I{runtime}", "main.cpp"]
        command += [str(runtime / "lockdown.cpp"), "-o", "main"]
        subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["42"] * 7 + ["0"]


def test_the_verdict_is_the_same_at_every_sandbox_level(sim: Sim) -> None:
    good = _case("")
    bad = _case("", "out[threadIdx.x + 1] = threadIdx.x;")
    seen: set[tuple[str, str]] = set()
    for level in LEVELS:
        settings = replace(sim.settings, sandbox=level)
        try:
            available_level(settings)
        except SetupError:
            continue  # a machine may have neither bubblewrap nor Landlock
        here = sim.with_(settings=settings)
        outcome = here.execute(good)
        assert outcome.status is Status.PASSED
        assert outcome.sandbox == level
        refused = here.execute(bad)
        seen.add((str(refused.status), refused.diagnostics[0].message))
    assert len(seen) == 1


@pytest.mark.slow  # two programs
def test_assertions_are_evaluated_and_a_failed_one_is_a_crash(sim: Sim) -> None:
    good = _case("#include <cassert>", "bool said = false; assert((said = true)); out[0] = said;")
    sim.outputs(good)
    source = "#include <cassert>\n" + KERNEL.replace("BODY", "assert(threadIdx.x < 7);")
    case = SimCase(source, outputs={"out": np.zeros(32, np.float32)})
    found = sim.fault(case, Status.CRASH)
    assert found.line == line_of(source, "assert(")
    assert "assertion failed: threadIdx.x < 7" in found.message
