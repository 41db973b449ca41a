"""Units of CUDA C++ in the styles of production libraries, with the grammar and without."""

import pytest

from kopt.tools.docs.chunking import cuda_units
from kopt.tools.docs.chunking.cuda_tree import has_grammar
from support.chunked_files import chunk_of, chunks_of


@pytest.fixture(autouse=True, params=["grammar", "scanner"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run each test with tree-sitter and with the brace scanner alone."""
    if request.param == "scanner":
        monkeypatch.setattr(cuda_units, "has_grammar", lambda: False)
    else:
        assert has_grammar(), "these tests need the extra docs, which make test installs"
    return str(request.param)


BODY = "{\n  int i = threadIdx.x;\n  out[i] = 2.f * out[i];\n  out[i] += 1.f;\n}\n"


@pytest.mark.parametrize(
    "head",
    [
        "__global__ void scale(float* out)",
        "template <int kSize>\n__global__ void __launch_bounds__(128, 2) scale(float* out)",
        "__global__ void\nACME_MAX_REGS(64) scale(float* out)",
        "__global__ void\n#if ACME_BOUNDS\n__launch_bounds__(128)\n#endif\nscale(float* out)",
        "__global__ void\n#if ACME\n__launch_bounds__(128) scale(\n#else\nscale(\n#endif\n"
        "    float* out)",
        "template <class T>\n#if (__CUDA_ARCH__ >= 900)\n__global__ void __cluster_dims__(2, 1)\n"
        "    __launch_bounds__(T::kMost)\n#else\n__global__ void\n#endif\n    scale(float* out)",
        "template <class M>\n__global__ __launch_bounds__(decltype(size(M{}))::value) void\n"
        "scale(float* out)",
        'extern "C" __global__ void scale(float* out)',
        "template <class T, class = std::enable_if_t<(sizeof(T) > 2)>>\n__global__ void\n"
        "scale(float* out)",
        "ACME_KERNEL void scale(float* out)",
    ],
)
def test_kernel_is_named_whatever_stands_before_its_name(head: str) -> None:
    chunk = chunk_of("scale", f"#include <x>\n\n// Doubles.\n{head} {BODY}")
    assert (chunk.kind, chunk.comment) == ("kernel", "Doubles.")
    assert "2.f * out[i]" in chunk.body


def test_directives_that_break_the_brackets_of_a_body_lose_no_function() -> None:
    text = (
        "template <class T>\n__device__ void first(T* out) {\n#if (__CUDA_ARCH__ < 800)\n"
        "  if constexpr (is_bf16<T>) {\n    trap();\n  } else {\n#endif\n    out[0] = 1;\n"
        "    out[1] = 2;\n#if (__CUDA_ARCH__ < 800)\n  }\n#endif\n}\n\n"
        f"__global__ void second(float* out) {BODY}"
    )
    first, second = chunk_of("first", text), chunk_of("second", text)
    assert (first.kind, first.start_line, first.end_line) == ("device", 1, 13)
    assert (second.kind, second.end_line) == ("kernel", 19)


def test_each_branch_of_a_directive_keeps_its_kernel() -> None:
    text = f"#ifdef A\n__global__ void one(float* out) {BODY}#else\n" + "// other\n" * 500
    text += f"__global__ void two(float* out) {BODY}#endif\n"
    assert {chunk.kind for chunk in chunks_of(text)} >= {"kernel"}
    assert chunk_of("one", text).kind == "kernel"
    assert "void two(" in "".join(chunk.body for chunk in chunks_of(text))


def test_branch_for_other_devices_hides_nothing() -> None:
    text = f"#ifdef USE_ROCM\nvoid none() {{}}\n#else\n__global__ void scale(float* out) {BODY}"
    assert chunk_of("scale", f"{text}#endif\n").kind == "kernel"


def test_namespace_behind_a_macro_is_a_scope() -> None:
    text = f"ACME_BEGIN\nnamespace acme::norm {{\n__global__ void scale(float* out) {BODY}}}\n"
    assert chunk_of("scale", text).scope == ("acme", "norm")


@pytest.mark.parametrize(
    ("head", "symbol", "kind"),
    [
        (
            "ACME_HOST_DEVICE constexpr auto\noperator+(V const& a, V const& b)",
            "operator+",
            "device",
        ),
        ("__device__ void Owner<T, 3>::push(int x)", "Owner::push", "device"),
        ("__forceinline__ __device__ float4 load(float const* in)", "load", "device"),
        ("ACME_DEVICE static void copy(int const& a, int& b)", "copy", "device"),
        ("template <class T>\nvoid launch(T* out, cudaStream_t stream)", "launch", "host"),
        ("__device__ float& at(int i)", "at", "device"),
    ],
)
def test_function_has_its_plain_name_and_place(head: str, symbol: str, kind: str) -> None:
    chunk = chunk_of(symbol, f"{head} {BODY}")
    assert chunk.kind == kind


def test_type_is_named_without_its_arguments() -> None:
    text = (
        "template <class T, class Enable = void>\nstruct Load;\n\ntemplate <class T>\n"
        "struct Load<T, enable_if_t<(sizeof(T) == 4)>> {\n  T a;\n  T b;\n  T c;\n};\n"
    )
    assert chunk_of("Load", text).kind == "struct"


def test_call_among_the_arguments_of_a_type_makes_it_no_function() -> None:
    text = (
        "template <class T, int kStages>\nclass Mma<T, kStages,\n"
        "          std::enable_if_t<is_fine(T::kOp)>>\n    : public Base<T> {\n  T a;\n  T b;\n};\n"
    )
    assert chunk_of("Mma", text).kind == "struct"


def test_directives_inside_a_member_hide_no_later_member() -> None:
    lines = "\n".join(f"    x += {n};" for n in range(60))
    text = (
        "struct Loop {\n  int a;\n  int b;\n"
        "  static int plan(int x) {\n#if ACME\n    if (x) {\n#else\n"
        f"    while (x) {{\n#endif\n{lines}\n    }}\n    return x;\n  }}\n"
        f"  ACME_DEVICE void mma(int x) {{\n{lines}\n  }}\n}};\n"
    )
    assert chunk_of("Loop::mma", text).kind == "device"


def test_braces_of_default_arguments_are_no_body() -> None:
    text = f"__device__ void first(float* out, Shape shape = Shape{{}}) {BODY}\n"
    chunk = chunk_of("first", f"{text}__global__ void second(float* out) {BODY}")
    assert (chunk.kind, chunk.end_line) == ("device", 5)


def test_end_of_a_namespace_is_not_taken_for_the_beginning_of_what_follows() -> None:
    text = f"namespace a {{\nint x;\n}}  // namespace a\n\n__global__ void scale(float* out) {BODY}"
    assert chunk_of("scale", text).signature == "__global__ void scale(float* out)"


def test_long_type_is_given_member_by_member() -> None:
    lines = "\n".join(f"    x += {n};" for n in range(60))
    member = "  // {0} things.\n  __device__ void {0}(int x) {{\n{1}\n  }}\n"
    text = (
        "struct Mainloop {\n  int stages;\n  int tile;\n  int depth;\n"
        f"{member.format('load', lines)}{member.format('store', lines)}}};\n"
    )
    load, whole = chunk_of("Mainloop::load", text), chunk_of("Mainloop", text)
    assert (load.kind, load.scope, load.comment) == ("device", ("Mainloop",), "load things.")
    assert "int stages" in whole.body
    assert "x += 1" not in whole.body
    assert whole.derived


def test_tiny_neighbors_are_one_chunk_and_kernels_stay_alone() -> None:
    tiny = "__device__ int {0}(int x) {{\n  x += 1;\n  return x;\n}}\n\n"
    text = tiny.format("one") + tiny.format("two") + f"__global__ void scale(float* out) {BODY}"
    assert [chunk.symbol for chunk in chunks_of(text)] == ["one, two", "scale"]


def test_long_function_is_cut_into_pieces_under_its_signature() -> None:
    lines = "\n".join(f"  x += {n};" for n in range(200))
    first, second, third = chunks_of(f"// Adds.\n__device__ void add(int x) {{\n{lines}\n}}\n")
    assert (first.start_line, first.end_line, first.head) == (1, 90, "")
    assert (second.start_line, second.end_line) == (83, 172)
    assert second.head == third.head == "__device__ void add(int x)"
    assert {first.symbol, second.symbol, third.symbol} == {"add"}


def test_code_of_a_raw_string_breaks_nothing_after_it() -> None:
    text = 'char const* code = R"(\n__global__ void text() {\n}\n)";\n\n'
    assert chunk_of("scale", f"{text}__global__ void scale(float* out) {BODY}").kind == "kernel"


def test_macro_that_makes_a_kernel_is_found_by_its_name(reader: str) -> None:
    text = (
        "#define MAKE_KERNEL(N) \\\n  __global__ void k##N(float* p) { \\\n"
        "    p[0] = N; \\\n    p[1] = N; \\\n  }\n"
    )
    if reader == "grammar":
        assert chunk_of("MAKE_KERNEL", text).kind == "kernel"
    assert "k##N" in chunks_of(text)[0].body


def test_code_that_nobody_understands_is_a_gap() -> None:
    text = "ACME_TABLE(\n  one,\n  two,\n  three\n  four )( {\n  five,\n"
    assert "three" in "".join(chunk.body for chunk in chunks_of(text))


def test_little_code_is_no_chunk() -> None:
    assert chunks_of("#include <a>\nusing namespace b;\nstruct C;\nint x;\n// end\n") == []


def test_little_device_code_is_kept_with_its_explanation() -> None:
    text = '__device__ void wait() {\n  asm volatile("griddepcontrol.wait;");\n}\n'
    said = (
        "// Waits until the kernel before has signaled.\n// Does nothing if it was not asked for.\n"
    )
    assert chunks_of(text) == []
    assert chunk_of("wait", said + text).kind == "device"


def test_template_of_a_source_is_read_as_what_it_makes() -> None:
    text = (
        "{% for n in sizes %}\n__global__ void scale_{{ n }}(float* out) {\n"
        "  {% if n > 4 %}\n  out[0] = {{ n }};\n  {% endif %}\n  out[1] = 2;\n  out[2] = 3;\n}\n"
        "{% endfor %}\n"
    )
    chunk = chunk_of("scale_n", text, "csrc/a.jinja")
    assert (chunk.kind, chunk.start_line) == ("kernel", 2)
    assert "scale_{{ n }}" in chunk.body


def test_legal_notice_is_no_comment_of_the_first_function() -> None:
    text = f"// Copyright (c) ACME\n// Licensed under MIT\n__global__ void scale(float* out) {BODY}"
    assert chunk_of("scale", text).comment == ""
