"""Sources without comments: all code stays where it was, whatever tries to hide it."""

import pytest

from kopt.search.agents.verifier import quotes, without_comments

HEADER = "/* kopt: 1\nfamily: other\n*/\n"


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("int a; // gone", "int a;"),
        ("int /* gone */ a;", "int            a;"),
        ("/* gone\n gone */ int a;", "\n         int a;"),
        ('f("// stays"); // gone', 'f("// stays");'),
        ('f(R"(" /* stays )"); // gone', 'f(R"(" /* stays )");'),
        ("#define A \\\n  b // gone", "#define A \\\n  b"),
        ("// gone \\\n gone\nint a;", "        \\\n\nint a;"),
        ("char q = '\"'; int a; // gone", "char q = '\"'; int a;"),
    ],
)
def test_comments_are_blanked_and_code_stays_on_its_line(body: str, shown: str) -> None:
    assert without_comments(HEADER + body) == HEADER + shown


@pytest.mark.parametrize("body", ["in\\\nt a; // seen", 'f(R"x(" /* )x"); int b; /* " */ int c;'])
def test_code_is_never_taken_for_a_comment(body: str) -> None:
    found = without_comments(HEADER + body)
    assert all(word in "".join(found.split()) for word in ("t", "a;") if word in body)
    assert ("int c;" in found) is ("int c;" in body)


@pytest.mark.parametrize(
    ("header", "shown"),
    [
        ("/* kopt: 1\nnote: gone\nfamily: other\n*/", "/* kopt: 1\n\nfamily: other\n*/"),
        (
            "/* kopt: 1\nnote: |\n  gone\n\n  gone\nlaunch: []\n*/",
            "/* kopt: 1\n\n\n\n\nlaunch: []\n*/",
        ),
        ('/* kopt: 1\nnote: gone\n"launch": []\n*/', '/* kopt: 1\n\n"launch": []\n*/'),
        ("/* kopt: 1\nfamily: other   # gone\n*/", "/* kopt: 1\nfamily: other\n*/"),
        (
            "/* kopt: 1\n{family: other, note: stays}*/",
            "/* kopt: 1\n{family: other, note: stays}*/",
        ),
    ],
)
def test_header_loses_its_note_and_nothing_else(header: str, shown: str) -> None:
    assert without_comments(f"{header}\nint a;") == f"{shown}\nint a;"


def test_source_without_a_header_is_bare_from_its_start() -> None:
    assert without_comments("int a; // gone") == "int a;"


@pytest.mark.parametrize(
    ("line", "is_there"),
    [
        ("int  a=3;", True),
        ("int a", False),
        ("total += partial [warp]", True),
        ("total +=", False),
        ("a = 33", False),
        ("int a = 3; b", False),
        ("}", False),
    ],
)
def test_quote_is_a_whole_line_or_a_telling_part_whatever_its_blanks(
    line: str, is_there: bool
) -> None:
    source = "{\n  int a = 3;\n  if (warp < 8) total += partial[warp];\n};\n"
    assert quotes(source, line) is is_there
