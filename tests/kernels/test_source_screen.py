"""The source screen: what each refused construct says, and that honest code passes."""

import pytest

from kopt.kernels.candidate import Candidate
from kopt.kernels.source_screen import screen_source

HEADER = "/* kopt: 1\nfamily: other\nspecialize: [H]\ntune: {BLOCK: [128], USE_LDG: [0, 1]}\n*/\n"


def found(body: str) -> list[str]:
    return [diagnostic.message for diagnostic in screen_source(Candidate(HEADER + body))]


@pytest.mark.parametrize(
    "body",
    [
        "#include <cuda_bf16.h>\n#include <cuda_fp8.h>\n#include <cstdint>\n#include <math.h>",
        "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>",
        "#include <cub/block/block_reduce.cuh>\n#include <cuda/std/type_traits>",
        "#include <cuda/ptx>",
        "# /* why */ include <cuda_fp4.h> // because",
        '#include <kopt/nvfp4_utils.cuh>\n#include "kopt/nvfp4_utils.cuh"',
        "// #include </etc/passwd> and __CUDA_AXCH__ and KOPT_SIM and .incbin",
        '/* #include "../x"\n#if __CUDA_AXCH__ */',
        'const char* text = "__CUDA_AXCH__ // /* #include <../x>";',
        'const char* raw = R"x(#include </etc/passwd> " )" )x";',
        "#if BLOCK > 64 && KOPT_H == 2048 && defined(USE_LDG)\n#elif USE_LDG\n#else\n#endif",
        "#define ROWS 4\n#ifdef ROWS\n#endif\n#ifndef BLOCK\n#define BLOCK 1\n#endif",
        "#if USE_LDG\n#define W 4\n#elif 1\n#define W 2\n#else\n#define W 1\n#endif\n#if W\n#endif",
        "#define TWICE(x) (2 * (x))\n#define ROWS TWICE(BLOCK)\n#if ROWS > 64 && TWICE(1)\n#endif",
        "struct __attribute__((aligned(16), packed)) S {}; __attribute__((noinline)) void f();",
        'asm("mov.u32 %0, %%laneid;" : "=r"(x)); asm volatile("bar.sync 0;");',
        "#if USE_LDG\n#include <cub/block/block_reduce.cuh>\n#endif\n#define ROWS 4",
        "#pragma unroll 4\n#pragma unroll\n#pragma nounroll\n#pragma nv_diag_suppress 177",
        '_Pragma("unroll") for (;;) {}',
        '#define KERNEL(NAME, T) extern "C" __global__ void kernel_##NAME(T* x)',
        "#define LOG(f, ...) g(f, ##__VA_ARGS__)",
        "#define MAX(a, b) \\\n  ((a) > (b) ? (a) : (b))\n",
        "__global__ void __launch_bounds__(BLOCK) k(const float* __restrict__ x) {"
        " __shared__ __align__(16) float s[4]; __syncthreads(); __ldg(x); }",
        "auto c = __nv_cvt_float2_to_fp4x2(v, __NV_E2M1, cudaRoundNearest); // __NV_SATFINITE",
        "auto d = __nv_cvt_float_to_fp8(v, __NV_SATFINITE, __NV_E4M3);",
        "int million = 1'000'000; char quote = '\"'; char tick = '\\''; float f = 1.e-5f;",
        'if (__builtin_expect(x > 0, 1)) { asm volatile("mov.u32 %0, %%laneid;" : "=r"(x)); }',
        "#ifdef __CUDA_ARCH__\n#if __CUDA_ARCH__ >= 900 && defined(__CUDACC__)\n#endif\n#endif",
        "int a = __CUDA_ARCH__; // and __NVCC__, __GNUC__, _MSC_VER, _WIN32",
        "#ifdef USE_FAST\n#endif\n#ifndef LANES\n#define LANES 4\n#endif\n#if LEVEL > 2\n#endif",
        "#define fp a\n#include <cuda_fp8.h>",
        "#error H must be even\n#warning slow",
        "#",
        "int x = a %b;",
        "#if 0\ndon't\n#endif",
        "#if 0\ndon't \"__CUDA_AXCH__\" \\'\n#endif\nauto a = '\\''; auto b = \"'__CUDA_AXCH__\";",
    ],
)
def test_honest_source_passes(body: str) -> None:
    assert found(body) == []


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("#include </etc/passwd>", "the absolute include </etc/passwd>"),
        ('#include "/etc/passwd"', "the absolute include"),
        ("#include <../secret.h>", "leaves its folder by .."),
        ("#include <kopt/../../x.cuh>", "leaves its folder by .."),
        ("#include <cuda/../../x>", "leaves its folder by .."),
        (
            "#include <kopt/absent.cuh>",
            "kopt has no header <kopt/absent.cuh>; there are kopt/",
        ),
        ("#include <fstream>", "not on the list of allowed headers"),
        ("#include <unistd.h>", "not on the list of allowed headers"),
        ("#include <nv/target>", "not on the list of allowed headers"),
        ('#include "helper.h"', "not on the list of allowed headers"),
        ("#include <cuda_bf16.h>x", "needs one header name"),
        ("#include <cuda//bf16.h>", "not on the list of allowed headers"),
        ("#include MACRO", "needs one header name"),
        ("#include", "needs one header name"),
        ("#inc\\\nlude </etc/passwd>", "the absolute include"),
        ("#/* */include/**/</etc/passwd>", "the absolute include"),
        ("/* \n */ #include </etc/passwd>", "the absolute include"),
        ("%:include </etc/passwd>", "write # instead of %:"),
        ("%:include </etc/passwd>", "the absolute include"),
        ("??=include </etc/passwd>", "write # instead of ??="),
        ("#include_next <math.h>", "#include_next is not allowed"),
        ("#import <math.h>", "#import is not allowed"),
        ("#embed </etc/passwd>", "#embed is not allowed"),
        ("#if __has_include(</etc/passwd>)\n#endif", "__has_include is a probe"),
        ("#line 7", "#line is not allowed"),
        ('# 7 "x.cu"', "a line marker is not allowed"),
        ("#ident x", "#ident is not allowed"),
        ("#ifdef __SANITIZE_THREAD__\n#endif", "__SANITIZE_THREAD__"),
        ("#ifdef KOPT_SIM\n#endif", "KOPT_SIM is a test of the simulator"),
        ("#ifdef KOPT_B\n#endif", "#ifdef tests KOPT_B, which nothing defines"),
        ("#if 0\n#elif __x86_64__\n#endif", "__x86_64__ is a predefined macro"),
        ("#ifndef __pic__\n#endif", "__pic__ is a predefined macro"),
        ("auto s = __DATE__ __TIME__;", "__DATE__"),
        ("auto s = __TIMESTAMP__;", "__TIMESTAMP__"),
        ("auto s = __FILE__;", "__FILE__"),
        ("int n = __COUNTER__;", "__COUNTER__"),
        ("NV_IF_TARGET(NV_IS_HOST, (a), (b))", "NV_IF_TARGET is a test of the target"),
        ("int a = CUB_PTX_ARCH;", "CUB_PTX_ARCH is a macro of a library"),
        ("int a = _CCCL_CUDA_COMPILER;", "reserved for libraries"),
        ('int a = __nvvm_reflect("__CUDA_ARCH");', "a probe of the target"),
        ("bool b = __builtin_is_constant_evaluated();", "a probe of the target"),
        ("auto f = __builtin_FILE();", "a probe of the build"),
        ("int a = k_##NDEBUG;", "NDEBUG is a setting"),
        ("#define CAT\\\n(x, y) x##y", "## may only extend a name"),
        ("#undef BLOCK", "#undef of BLOCK is not allowed: the header comment declares it"),
        ("#define BLOCK 7", "#define of BLOCK is not allowed: the header comment"),
        ("#ifndef H\n#endif\n#define BLOCK 7", "#define of BLOCK is not allowed"),
        ("#define TEXT(x) #x", "# in a macro"),
        ("#define TEXT(...) f(# __VA_ARGS__)", "# in a macro"),
        ("#define HIDE(x) as##x", "## may only extend a name"),
        ("#define HIDE(x) gn##x", "## may only extend a name"),
        ('void f() asm("g");', "asm with neither volatile nor operands"),
        ('void f() __asm__("g");', "__asm__ with neither"),
        ('void f() __asm("g" DROP(:));', "__asm with neither"),
        ("#define A asm", "asm with neither"),
        ('__attribute__((section(".x"))) int a;', "the attribute section is not allowed"),
        ('__attribute((alias("f"))) void g();', "the attribute alias is not allowed"),
        ('__attribute__((aligned("4"))) int a;', "an attribute with a string"),
        ("__attribute__((constructor)) void f() {}", "the attribute constructor is not allowed"),
        ("#define A __attribute__\nvoid A((x)) f();", "must stand with its whole list"),
        ("#define packed constructor", "packed is not allowed: it is the name of an attribute"),
        ('[[gnu::section(".x")]] int a;', "gnu is the name space of attributes"),
        ("#define CAT(a, b) a##b", "## may only extend a name"),
        ("#define CAT(a, b) a%:%:b", "write # instead of %:%:"),
        ("#define HIDE(x) __CUDA##x", "## may only extend a name"),
        ("#define HIDE(x) _##x", "## may only extend a name"),
        ("#define HIDE(x) KOPT_##x", "## may only extend a name"),
        ("#define HIDE(x) NV##x", "## may only extend a name"),
        ("#define HIDE(x) R##x", "## may only extend a name"),
        ("#define HIDE(x) 0##x", "## may only extend a name"),
        ("#define HIDE(...) __VA_ARGS__##x", "## may only extend a name"),
        ("#define HIDE(x) a \\\n ## x + x ## a", "## may only extend a name"),
        ("#define static_assert(...)", "static_assert is not allowed: it is a keyword"),
        ("#define kopt_accepts x", "kopt_accepts is a name that belongs to kopt"),
        ("#define __global__ x", "belong to the compiler"),
        ("#undef __shared__", "belong to the compiler"),
        ('#pragma GCC optimize("O0")', "#pragma GCC optimize"),
        ('#pragma push_macro("x")', "#pragma push_macro"),
        ("#pragma GCC system_header", "#pragma GCC system_header"),
        ("#pragma", "#pragma  is not allowed"),
        ('_Pragma("GCC optimize(3)")', "#pragma GCC optimize"),
        ("#define P(x) _Pragma(#x)", "_Pragma is allowed with a string literal only"),
        ('asm(".incbin \\"/etc/passwd\\"");', "an assembler .incbin reads files"),
        ('asm(".inc" "bin \\"/etc/passwd\\"");', "an assembler .incbin reads files"),
        ('asm("\\x2eincbin");', "an assembler .incbin reads files"),
        ('asm("\\56incbin");', "an assembler .incbin reads files"),
        ('asm(R"(.incbin "x")");', "an assembler .incbin reads files"),
        ('asm(".include \\"/etc/passwd\\"");', "an assembler .include reads files"),
        ("int a; // ??/\nint b;", "the trigraph ??/"),
        ("int a; // \\ \nint b;", "a backslash with blanks"),
        ("int a;\x00", "a control character"),
        ("int a;\rint b;", "a control character"),
        ("int a; // \x9b31m", "a control character"),
        ("int a; /* \u202e } \u2066 if (x) */", "a mark that turns the text"),
        ('#define X R"(\n)"', "a raw string over several lines inside a directive"),
        ("' __CUDA_AXCH__", "__CUDA_AXCH__"),
        ('"\\" \'a\' " __CUDA_AXCH__', "__CUDA_AXCH__"),
        ("u8'\\' L'\\' \"text\" __CUDA_AXCH__", "__CUDA_AXCH__"),
        ("' \n'a' __CUDA_AXCH__ 'b'", "__CUDA_AXCH__"),
        ("#if 0\ndon't __CUDA_AXCH__\n#endif", "__CUDA_AXCH__"),
        ('R"( )\\\n" )" __CUDA_AXCH__ "', "__CUDA_AXCH__"),
        ("// comment \\\nstill comment\n__CUDA_AXCH__", "__CUDA_AXCH__"),
        ('FOOR"( " __CUDA_AXCH__ ")"', "__CUDA_AXCH__"),
        ("1'0 __CUDA_AXCH__ '", "__CUDA_AXCH__"),
    ],
)
def test_forbidden_construct_is_refused(body: str, message: str) -> None:
    assert any(message in text for text in found(body)), found(body)


def test_finding_shows_line_column_and_caret() -> None:
    body = "int a;\n\tint arch = \\\n    __CUDA_AXCH__;\n"
    diagnostic = screen_source(Candidate(HEADER + body))[0]
    assert (diagnostic.line, diagnostic.column) == (8, 5)
    assert diagnostic.excerpt == "    __CUDA_AXCH__;\n    ^"
    assert diagnostic.severity == "error"


def test_caret_of_a_long_line_stays_in_the_excerpt() -> None:
    body = f"/*{'x' * 500}*/ __CUDA_AXCH__ /*{'y' * 500}*/"
    excerpt = screen_source(Candidate(HEADER + body))[0].excerpt
    assert excerpt is not None
    line, caret = excerpt.split("\n")
    assert len(line) == 120
    assert line[caret.index("^") :].startswith("__CUDA_AXCH__")


def test_an_excerpt_obeys_no_control_character() -> None:
    excerpt = screen_source(Candidate(HEADER + "int a; // \x1b[2J \x9b31m \u202e"))[0].excerpt
    assert excerpt is not None
    assert excerpt.split("\n")[0] == "int a; // \ufffd[2J \ufffd31m \ufffd"


def test_findings_are_told_in_source_order_up_to_a_limit() -> None:
    diagnostics = screen_source(Candidate(HEADER + "__CUDA_AXCH__\n" * 100))
    assert [diagnostic.line for diagnostic in diagnostics] == list(range(6, 26))


@pytest.mark.parametrize(
    "body", ['"', "'", "/*", 'R"(', "#define", "#if", "##", "\\", "#include <", "é$"]
)
def test_unfinished_source_does_not_make_the_screen_fail(body: str) -> None:
    screen_source(Candidate(HEADER + body))


def test_source_without_header_is_screened() -> None:
    assert screen_source(Candidate("#include </etc/passwd>\n"))[0].line == 1


def test_a_header_of_one_s_own_is_told_that_a_candidate_is_one_file() -> None:
    (found,) = screen_source(Candidate('#include "foo.h"\n'))
    assert (found.hint or "").startswith("a candidate is one file")
