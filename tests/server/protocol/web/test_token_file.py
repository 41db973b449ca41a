"""Files of bearer tokens: made for one user's eyes, refused where others can read them."""

import os
from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.server.protocol.web.token_file import Tokens, read_tokens, write_token

GOOD = "Zm9vYmFyYmF6cXV1eGNvcmdlZ3JhdWx0Z2FycGx5"
OTHER = "d2FsZG9mcmVkcGx1Z2h4eXp6eXRodWRmb29iYXI="


def _file(tmp_path: Path, text: str, mode: int = 0o600) -> Path:
    path = tmp_path / "token"
    path.write_text(text)
    path.chmod(mode)
    return path


def named(tokens: Tokens, token: bytes) -> str | None:
    """Return the name of the holder of `token`."""
    found = tokens.holder(token)
    return None if found is None else found.name


def test_a_new_token_is_private_and_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "token"
    write_token(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o077 == 0
    assert named(read_tokens(path), path.read_bytes().strip()) == "token-1"


def test_two_new_tokens_differ(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_token(tmp_path / name)
    assert (tmp_path / "a").read_text() != (tmp_path / "b").read_text()


def test_a_token_is_never_overwritten(tmp_path: Path) -> None:
    path = _file(tmp_path, GOOD)
    with pytest.raises(ToolError, match="exists and is kept"):
        write_token(path)
    assert path.read_text() == GOOD


def test_each_line_is_a_holder_of_its_own(tmp_path: Path) -> None:
    tokens = read_tokens(_file(tmp_path, f"# ours\n\n{GOOD}\n  {OTHER}  \n"))
    assert named(tokens, GOOD.encode()) == "token-1"
    assert named(tokens, OTHER.encode()) == "token-2"


def test_owner_is_its_tokens_own_wherever_the_line_stands(tmp_path: Path) -> None:
    first = read_tokens(_file(tmp_path, f"{GOOD}\n{OTHER}\n")).holder(OTHER.encode())
    second = read_tokens(_file(tmp_path, f"{OTHER}\n")).holder(OTHER.encode())
    other = read_tokens(_file(tmp_path, f"{GOOD}\n")).holder(GOOD.encode())
    assert first and second and other
    assert first.owner == second.owner != other.owner
    assert OTHER not in first.owner


@pytest.mark.parametrize("text", ["", "nonsense", GOOD[:-1], GOOD + "x", GOOD.lower(), "\xe4" * 40])
def test_any_other_text_has_no_holder(tmp_path: Path, text: str) -> None:
    assert read_tokens(_file(tmp_path, GOOD)).holder(text.encode()) is None


def test_tokens_show_nothing_of_themselves(tmp_path: Path) -> None:
    tokens = read_tokens(_file(tmp_path, GOOD))
    assert repr(tokens) == "Tokens()"
    assert GOOD.encode() not in tokens.digests
    assert Tokens(()).holder(b"") is None


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o601])
def test_a_file_that_others_can_open_is_refused_with_the_remedy(tmp_path: Path, mode: int) -> None:
    path = _file(tmp_path, GOOD, mode)
    with pytest.raises(ToolError, match=f"chmod 600 {path}"):
        read_tokens(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("short-token-of-31-characters-xx", "line 1 of .* has 31 characters; a token needs 32"),
        (f"{GOOD}\nabcabcabcabcabcabcabcabcabcabcabcabc", "line 2 of .* can be guessed"),
        ("a token with spaces in it is no token at all", "line 1 of .* has characters"),
        ("\xe4" * 40, "line 1 of .* has characters"),
        ("# nothing but remarks\n\n", "holds no token"),
        ("A" * 70_000, "no token file"),
    ],
)
def test_a_weak_or_broken_token_is_refused_by_its_line(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(ToolError, match=said) as refusal:
        read_tokens(_file(tmp_path, text))
    secrets = [line for line in text.split() if len(line) > 12]
    assert not any(secret in str(refusal.value) for secret in secrets)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"cannot read .*No such file.*--new-token"):
        read_tokens(tmp_path / "nothing")
    with pytest.raises(ToolError, match="--new-token"):
        read_tokens(tmp_path)


def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ToolError, match="is not a file"):
        read_tokens(tmp_path / "pipe")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    path = _file(tmp_path, GOOD)
    os.chown(path, 65534, 65534)
    with pytest.raises(ToolError, match="belongs to another user"):
        read_tokens(path)
