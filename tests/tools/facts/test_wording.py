"""Strings that a hostile author can choose are made harmless and keep what they say."""

import pytest

from kopt.tools.facts.wording import (
    MARK,
    clipped,
    file_name,
    lines,
    lines_beginning,
    plain,
    plain_beginning,
    tune_words,
)


@pytest.mark.parametrize(
    ("text", "tamed"),
    [
        ("\x1b[31mred\x1b[0m", f"{MARK}[31mred{MARK}[0m"),
        ("a\x00b\x7fc", f"a{MARK}b{MARK}c"),
        ("one\nnext: two", "one next: two"),
        ("one\r\n\ttwo\u2028three", "one two three"),
        ("right\u202eleft", f"right{MARK}left"),
        ("zero\u200bwidth", f"zero{MARK}width"),
        ("no\u00a0break", "no break"),
        ("a" + "\x00" * 3 + "b", f"a{MARK * 3}b"),
        ("a" + "\x00" * 5000 + "b", f"a{MARK}[5,000 times]b"),
        ("naïve 漢字 😀", "naïve 漢字 😀"),
    ],
)
def test_one_line_has_nothing_that_a_terminal_obeys(text: str, tamed: str) -> None:
    assert plain(text) == tamed


def test_lines_are_kept_where_they_mean_something() -> None:
    assert lines("  int x;\r\n\ty;  \x07\n") == f"  int x;\n    y;  {MARK}"


@pytest.mark.parametrize("split", ["\n", "\r", "\r\n", "\v", "\f", "\x85", "\u2028", "\u2029"])
def test_every_kind_of_line_break_becomes_the_plain_one(split: str) -> None:
    assert lines(f"a{split}b") == "a\nb"


@pytest.mark.parametrize(
    ("text", "tamed"),
    [
        ("cannot write /home/ada/.kopt/runs", "cannot write ~/.kopt/runs"),
        ("in '/home/ada/x.cu'", "in '~/x.cu'"),
        ("file:///home/ada/x.cu:3", "file://~/x.cu:3"),
        ("home is /home/ada.", "home is ~."),
        ("/usr/include/x.h", "/usr/include/x.h"),
        ("/tmp/user/nfs/home/ada/kopt", "/tmp/user/nfs/home/ada/kopt"),
        ("~/home/ada/x", "~/home/ada/x"),
        ("/home/adam/x and /home/ada.old/x", "/home/adam/x and /home/ada.old/x"),
        ("/home/alice/kopt", "/home/alice/kopt"),
    ],
)
def test_only_the_own_home_folder_at_the_start_of_a_path_becomes_a_tilde(
    text: str, tamed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert plain(text) == tamed
    assert lines(text) == tamed


def test_root_as_a_home_changes_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/")
    assert plain("see /usr/include/x.h") == "see /usr/include/x.h"


@pytest.mark.parametrize(
    "secret",
    [
        f"sk-ant-{'x' * 20}",
        f"pcsk_{'x' * 20}",
        f"Authorization: Bearer {'x' * 20}",
    ],
)
def test_keys_are_left_out(secret: str) -> None:
    assert "[left out]" in plain(f"failed with {secret} today")
    assert secret.split()[-1] not in plain(f"failed with {secret} today")


def test_what_is_cut_is_counted_also_when_cut_twice() -> None:
    once = clipped("x" * 1_000_000, 300)
    assert once == "x" * 300 + "... [999,700 more characters]"
    assert clipped(once, 100) == "x" * 100 + "... [999,900 more characters]"
    assert clipped("short", 300) == "short"


def test_lines_that_are_cut_are_counted() -> None:
    assert lines_beginning("a\nbbbbb\nc\nd", 2, 3) == (
        "a\nbbb... [2 more characters]\n... [2 more lines]"
    )
    assert lines_beginning("x\n" * 1_000_000, 2, 3).endswith("more lines]")
    assert lines_beginning("x" * 1000, 2, 3) == (
        "xxx... [21 more characters]\n... [976 more characters]"
    )


def test_beginning_of_a_long_message_counts_what_is_left_out() -> None:
    assert plain_beginning("a" * 1_000_000, 5) == "aaaaa... [999,995 more characters]"
    assert plain_beginning("a\n b", 5) == "a b"


def test_file_is_named_without_the_folders_above_it() -> None:
    assert file_name("/opt/venv/lib/kopt/kernels/common/access.cuh") == "common/access.cuh"
    assert file_name("access.cuh") == "access.cuh"


def test_tune_values_are_written_as_the_command_line_takes_them() -> None:
    assert tune_words({"BLOCK": 256, "VEC": 8}) == "BLOCK=256,VEC=8"
