"""Diagnostics from what the compilers of this machine really print."""

import pytest

from kopt.config.settings import Settings
from kopt.kernels.parameter_types import ASSERTIONS_FILE
from kopt.kernels.record import Diagnostic
from kopt.tools.cuda.compiler_log import MAX_DIAGNOSTICS, parse_log
from support.cuda_sources import compiled


def errors_of(source: str, settings: Settings) -> list[Diagnostic]:
    """The errors that nvcc reports about a source that does not compile."""
    run = compiled(source, settings)
    assert run.cubin is None
    return [entry for entry in parse_log(run.log, source) if entry.severity == "error"]


def test_a_front_end_error_has_the_author_s_line_column_and_excerpt(settings: Settings) -> None:
    source = """#define TWICE(x) ((x) + (x))
extern "C" __global__ void k(float* o) {
\tfloat a = TWICE(o[0]) + missing_name;
  o[0] = a
}
"""
    undefined, semicolon = errors_of(source, settings)
    assert undefined.message == 'identifier "missing_name" is undefined'
    # The compiler shows the line with its macros expanded; the column counts the author's line.
    assert (undefined.line, undefined.column) == (3, 26)
    assert undefined.excerpt is not None
    text, caret = undefined.excerpt.split("\n")
    assert text[caret.index("^") :].startswith("missing_name")
    assert (semicolon.message, semicolon.line) == ('expected a ";"', 5)
    assert undefined.file is None


def test_an_unknown_include_is_the_preprocessor_s_error(settings: Settings) -> None:
    (error,) = errors_of("// head\n#include <no_such.h>\n", settings)
    assert "no_such.h" in error.message
    assert (error.line, error.column) == (2, 10)


def test_a_ptxas_error_is_reported_as_such(settings: Settings) -> None:
    source = 'extern "C" __global__ void k() { asm volatile("tcgen05.wait::ld.sync.aligned;"); }'
    (error,) = errors_of(source, settings)
    assert error.message.startswith("ptxas: Instruction 'tcgen05.wait' not supported on .target")


def test_an_undefined_function_is_the_linker_s_error(settings: Settings) -> None:
    source = """extern __device__ int elsewhere(int);
extern "C" __global__ void k(int* o) { o[0] = elsewhere(3); }
"""
    (error,) = errors_of(source, settings)
    assert "Unresolved extern function" in error.message


def test_a_warning_of_a_good_compile_has_its_line(settings: Settings) -> None:
    source = 'extern "C" __global__ void k(int* o) {\n  int unused = 3;\n}\n'
    run = compiled(source, settings)
    (warning,) = parse_log(run.log, source)
    assert (warning.severity, warning.line, warning.column) == ("warning", 2, 7)
    assert "never referenced" in warning.message


def test_an_error_inside_a_kopt_header_names_the_header_and_the_use() -> None:
    log = """/home/me/cache/include/0123456789abcdef/kopt/nvfp4_utils.cuh(31): error: no member "m"
    return t.m;
             ^
          detected during instantiation of "float f(T) [with T=S]" at line 2 of candidate.cu

1 error detected in the compilation of "candidate.cu".
"""
    (error,) = parse_log(log, "struct S {};\nf(S{});\n")
    assert (error.file, error.line) == ("kopt/nvfp4_utils.cuh", 2)
    assert error.message == 'no member "m" (kopt/nvfp4_utils.cuh line 31)'
    assert "/home" not in error.model_dump_json()


def test_nvrtc_s_catastrophic_error_is_an_error() -> None:
    log = """candidate.cu(1): catastrophic error: cannot open source file "x.h"
  #include <x.h>
                ^
"""
    (error,) = parse_log(log, "#include <x.h>\n")
    assert (error.severity, error.line, error.column) == ("error", 1, 15)


def test_messages_about_the_plan_s_assertions_keep_their_file() -> None:
    log = f'{ASSERTIONS_FILE}(2): error: static assertion failed with "kernel k"\n'
    (error,) = parse_log(log, "int a;\nint b;\n")
    assert (error.file, error.line) == (ASSERTIONS_FILE, None)


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ("nvcc fatal   : Unsupported gpu architecture 'compute_10'", "error"),
        ("nvcc error   : 'cicc' died due to signal 9 (Kill signal)", "error"),
        ("ptxas warning : Potential Performance Loss: wgmma serialized", "warning"),
    ],
)
def test_messages_without_a_place_are_kept(line: str, severity: str) -> None:
    (found,) = parse_log(line, "")
    assert found.severity == severity
    assert found.line is None


def test_a_flood_of_errors_is_cut_and_says_so() -> None:
    log = "\n".join(f"candidate.cu(1): error: number {i}\n" for i in range(100))
    found = parse_log(log, "x\n")
    assert len(found) == MAX_DIAGNOSTICS + 1
    assert found[-1].message.startswith(f"{100 - MAX_DIAGNOSTICS} more")


def test_a_line_number_beyond_the_source_is_not_invented() -> None:
    (error,) = parse_log("candidate.cu(99): error: oops\n", "one line\n")
    assert (error.line, error.excerpt) == (None, None)
