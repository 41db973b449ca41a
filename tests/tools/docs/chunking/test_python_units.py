"""Units of Python: what the decorators of kernel languages say, and what cannot be parsed."""

import pytest

from support.chunked_files import chunk_of, chunks_of

BODY = "    a = tl.load(x)\n    b = a + a\n    tl.store(x, b)\n"


def _kinds(text: str) -> dict[str | None, str]:
    return {chunk.symbol: chunk.kind for chunk in chunks_of(text, "acme/ops.py")}


@pytest.mark.parametrize(
    ("decorator", "body", "kind"),
    [
        ("triton.jit", BODY, "kernel"),
        ("triton.jit(do_not_specialize=['n'])", BODY, "kernel"),
        ("triton.jit", f"{BODY}    return b\n", "device"),
        ("triton.autotune(configs=[], key=[])\n@triton.jit", f"{BODY}    return\n", "kernel"),
        ("gluon.jit", BODY, "kernel"),
        ("jit", BODY, "kernel"),
        ("cute.kernel", BODY, "kernel"),
        ("cute.jit", BODY, "device"),
        ("dsl_user_op", f"{BODY}    return b\n", "device"),
        ("T.prim_func", BODY, "kernel"),
        ("functools.cache", BODY * 2, "host"),
        ("register_fake('acme_kernel::double')", BODY * 2, "host"),
    ],
)
def test_decorators_say_where_a_function_runs(decorator: str, body: str, kind: str) -> None:
    chunk = chunk_of("double", f"@{decorator}\ndef double(x):\n{body}", "acme/ops.py")
    assert (chunk.kind, chunk.start_line) == (kind, 1)


def test_function_that_makes_a_kernel_is_a_kernel() -> None:
    inner = BODY.replace("    ", "        ")
    text = f"def make(n):\n    @T.prim_func\n    def main(x):\n{inner}    return main\n"
    assert _kinds(text) == {"make": "kernel"}


def test_docstring_is_the_comment_and_the_signature_is_one_line() -> None:
    head = "@triton.jit\ndef double(\n    x,  # pointer\n    n: tl.constexpr,\n):\n"
    text = f'{head}    """Doubles x."""\n{BODY}'
    chunk = chunk_of("double", text, "acme/ops.py")
    assert chunk.comment == "Doubles x."
    assert chunk.signature.startswith("@triton.jit def double( x,")


def test_short_host_functions_and_imports_are_left_out() -> None:
    text = "import a\nimport b\nfrom c import d\n\ndef launch(x):\n    y = x\n    return y\n\n"
    text += f"@triton.jit\ndef k(x):\n{BODY}"
    assert _kinds(text) == {"k": "kernel"}


def test_functions_that_a_platform_chooses_are_units() -> None:
    inner = BODY.replace("    ", "        ")
    text = f"if HIP:\n    x = 1\nelse:\n    @triton.jit\n    def double(x):\n{inner}"
    assert chunk_of("double", text, "acme/ops.py").kind == "kernel"


def test_long_class_is_its_head_and_its_methods() -> None:
    lines = "".join(f"        x += {n}\n" for n in range(50))
    text = (
        "class Gemm:\n    '''Multiplies.'''\n\n    tile = 128\n    stages = 3\n\n"
        f"    @cute.kernel\n    def kernel(self, x):\n{lines}\n    def plan(self, x):\n{lines}"
    )
    kernel, head = (chunk_of(name, text, "acme/gemm.py") for name in ("Gemm.kernel", "Gemm"))
    assert (kernel.kind, kernel.scope, kernel.start_line) == ("kernel", ("Gemm",), 7)
    assert (head.kind, head.comment) == ("class", "Multiplies.")
    assert "stages = 3" in head.body
    assert "x += 9" not in head.body


@pytest.mark.parametrize(
    "broken",
    [
        "def newer[**P, T: (int, 1.5 if)](x):\n    pass\n",
        "x = f'{a!q}'\n",
        "print 'two'\n",
        "x = '\0'\n",
        "x = " + "(" * 300 + "\n",
        "x = " + "-" * 20_000 + "1\n",
    ],
)
def test_file_that_this_python_cannot_parse_is_read_by_its_indentation(broken: str) -> None:
    text = f"{broken}\n@triton.jit\ndef double(\n    x,\n):\n{BODY}\n\ndef end(x):\n    return x\n"
    chunk = chunk_of("double", text, "acme/ops.py")
    assert chunk.kind == "kernel"
    assert chunk.body.startswith("@triton.jit\n")
    assert chunk.body.endswith("tl.store(x, b)")


def test_invalid_escapes_in_a_source_warn_nobody() -> None:
    assert chunk_of("k", f"P = '\\d'\n\n@triton.jit\ndef k(x):\n{BODY}", "acme/ops.py")


@pytest.mark.parametrize(
    ("path", "head", "framework"),
    [
        ("a.py", "import triton", "triton"),
        ("a.py", "import cutlass.cute as cute", "cute_dsl"),
        ("a.py", "import tilelang", None),
    ],
)
def test_framework_is_what_the_file_imports(path: str, head: str, framework: str | None) -> None:
    text = f"{head}\n\ndef f(x):\n" + "    x += 1\n" * 8
    chunk = chunk_of("f", text, path)
    assert (chunk.language, chunk.framework) == ("python", framework)
