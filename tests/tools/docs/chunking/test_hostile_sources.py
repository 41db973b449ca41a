"""Whatever a file holds, chunks come back, each with an address of its own."""

import pytest

from kopt.tools.docs.chunking.brace_scanner import blanked
from kopt.tools.docs.chunking.units import SourceLines
from support.chunked_files import chunk_of, chunks_of

pytestmark = pytest.mark.slow  # hostile texts of megabytes

N = 20_000
HOSTILE = {
    "empty": b"",
    "only ends of lines": b"\n" * N,
    "zero bytes": b"\0" * N,
    "bytes of no text": bytes(range(256)) * 100,
    "UTF-16": "__global__ void k() {\n  int a;\n  a = 1;\n}\n".encode("utf-16"),
    "open braces": b"{" * N,
    "closing braces": b"}" * N,
    "open parentheses": b"(" * N,
    "nested blocks": b"void f() " + b"{" * N + b"}" * N,
    "nested namespaces": b"namespace a {" * 2000 + b"}" * 2000,
    "nested types": b"struct a {\n" * 2000 + b"};\n" * 2000,
    "open templates": b"template <" * N,
    "open conditionals": b"#if A\n" * N,
    "open comment": b"/*" * N,
    "open comments with quotes": b'/*"' * 10 * N,
    "open string": b'"' * N,
    "escaped quotes": b'"\\' * 8 * N,
    "open raw string": b'R"(' + b"{" * N,
    "open expressions": b"{{" * N,
    "open statements": b"{%" * N,
    "minus signs": b"x = " + b"-" * N + b"1\n",
    "attributes": b"x = " + b"a." * N + b"b\n",
    "deep indentation": b"".join(b" " * depth + b"if x:\n" for depth in range(300)),
    "one line": b"__global__ void k(float* p) { p[0] = 1; } " * 500,
    "semicolons": b";" * N,
    "names": b"int " + b"a," * N,
    "continued macro": b"#define A \\\n" * N,
}


@pytest.mark.parametrize("path", ["a.cu", "a.py", "a.jinja"])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_file_gives_chunks_with_distinct_addresses(name: str, path: str) -> None:
    chunks = chunks_of(HOSTILE[name], path)
    addresses = [chunk.uid for chunk in chunks]
    assert len(addresses) == len(set(addresses))
    assert all(chunk.body and chunk.start_line <= chunk.end_line for chunk in chunks)


def test_long_lines_are_cut_and_say_so() -> None:
    chunk = chunk_of("k", b"__global__ void k() { " + b"a = 1; " * 10_000 + b"}")
    assert chunk.derived
    assert len(chunk.body) < 1000
    assert chunk.body.endswith("characters left out")


@pytest.mark.parametrize(
    ("text", "blank"),
    [
        ('"{\\"}', '"{\\"}'),
        ('"{\\" // }', '"{\\"     '),
        ('"{\\" /* {\\\n */ }', '"{\\"      \n    }'),
        ('"{\\"" }', "      }"),
    ],
)
def test_string_without_an_end_stays_but_for_its_comments(text: str, blank: str) -> None:
    assert blanked(text) == blank


@pytest.mark.parametrize("line", ['/* 3" wide */', '/* "\\" */'])
def test_lone_quote_in_a_comment_does_not_hide_its_end(line: str) -> None:
    source = SourceLines(f"{line}\nint a;", is_python=False)
    assert source.is_code[1]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_encoding_marks_and_line_ends_move_no_line(mark: str, end: str, encoding: str) -> None:
    lines = ["// größer", "__global__ void k(float* p) {", "  p[0] = 1;", "  p[1] = 2;", "}", ""]
    data = mark.encode() + end.join(lines).encode(encoding)
    chunk = chunk_of("k", data)
    assert (chunk.start_line, chunk.end_line, chunk.kind) == (1, 5, "kernel")
    assert "\r" not in chunk.body
