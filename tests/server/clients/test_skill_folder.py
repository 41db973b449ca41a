"""The skill in a client's folder: whole, taken back exactly, and nobody else's text is lost."""

import json
import os
from pathlib import Path

import pytest

from kopt.config.errors import SetupError, ToolError
from kopt.config.files import write_atomically
from kopt.server.clients import skill_folder
from kopt.server.clients.change import SetupTarget
from kopt.server.clients.client import Scope
from kopt.server.clients.known_clients import CLIENTS
from kopt.server.clients.skill_folder import carry_out_skill, plan_skill, plan_skill_undo
from kopt.server.skill import skill_files
from support.client_files import below, place_of

READERS = [key for key, client in CLIENTS.items() if client.skills is not None]
FOLDERS: dict[str, tuple[str, str]] = {
    "claude": ("home/.claude/skills/kopt", "project/.claude/skills/kopt"),
    "codex": ("home/.agents/skills/kopt", "project/.agents/skills/kopt"),
    "gemini": ("home/.gemini/skills/kopt", "project/.gemini/skills/kopt"),
    "vscode": ("home/.copilot/skills/kopt", "project/.github/skills/kopt"),
    "cursor": ("home/.cursor/skills/kopt", "project/.cursor/skills/kopt"),
    "opencode": ("home/.config/opencode/skills/kopt", "project/.opencode/skills/kopt"),
}


def place(root: Path, client: str = "claude", scope: Scope = "project") -> SetupTarget:
    """Return the folder of skills of a client whose home and project are below `root`."""
    default = place_of(CLIENTS[client], root)
    return SetupTarget(default.client, scope, "kopt", default.folders, default.project)


def written(root: Path) -> Path:
    """Write the skill for Claude Code, and return its folder."""
    change = plan_skill(place(root))
    carry_out_skill(change)
    return change.path


def texts(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder."""
    return {name: data for name, data in below(folder).items() if isinstance(data, bytes)}


@pytest.mark.parametrize("key", READERS)
def test_the_whole_skill_is_where_the_client_looks_for_it(key: str, tmp_path: Path) -> None:
    for scope, folder in zip(("user", "project"), FOLDERS[key], strict=True):
        change = plan_skill(place(tmp_path, key, "user" if scope == "user" else "project"))
        carry_out_skill(change)
        assert change.path == tmp_path / folder
        assert texts(change.path) == dict(skill_files())


def test_every_client_but_one_reads_skills() -> None:
    assert set(CLIENTS) - set(READERS) == {"claude-desktop"}
    assert set(FOLDERS) == set(READERS)


@pytest.mark.parametrize("key", READERS)
def test_undo_leaves_nothing_behind(key: str, tmp_path: Path) -> None:
    target = place(tmp_path, key)
    before = below(tmp_path)
    carry_out_skill(plan_skill(target))
    assert carry_out_skill(plan_skill_undo(target)) is None
    assert below(tmp_path) == before


def test_a_second_setup_has_nothing_to_do(tmp_path: Path) -> None:
    written(tmp_path)
    change = plan_skill(place(tmp_path))
    assert (change.is_needed, change.diff, change.summary) == (False, "", "")


def test_a_newer_skill_takes_the_place_of_an_older_and_undo_brings_that_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = {"SKILL.md": b"old\n", "references/gone.md": b"x\n", "references/replies.md": b"y\n"}
    monkeypatch.setattr(skill_folder, "skill_files", lambda: older)
    folder = written(tmp_path)
    between = below(tmp_path)
    monkeypatch.undo()
    change = plan_skill(place(tmp_path))
    assert change.replaced == ()
    assert "  goes: references/gone.md\n" in change.summary and "-old\n" in change.summary
    carry_out_skill(change)
    assert texts(folder) == dict(skill_files())
    carry_out_skill(plan_skill_undo(place(tmp_path)))
    assert below(tmp_path) == between


def test_text_that_kopt_did_not_write_is_named_and_other_files_stay(tmp_path: Path) -> None:
    folder = written(tmp_path)
    (folder / "references" / "mine.md").write_text("my notes\n")
    kept = plan_skill(place(tmp_path))
    assert (kept.is_needed, kept.replaced) == (False, ())
    (folder / "SKILL.md").write_text("mine\n")
    before = below(tmp_path)
    change = plan_skill(place(tmp_path))
    assert change.replaced == ("SKILL.md",)
    assert "-mine\n" in change.summary
    carry_out_skill(change)
    assert texts(folder) == {**skill_files(), "references/mine.md": b"my notes\n"}
    carry_out_skill(plan_skill_undo(place(tmp_path)))
    assert below(tmp_path) == before


def test_a_folder_that_was_changed_is_not_undone(tmp_path: Path) -> None:
    folder = written(tmp_path)
    (folder / "SKILL.md").write_text("mine\n")
    before = below(tmp_path)
    with pytest.raises(ToolError, match=r"has changed since kopt wrote it.* Before, there was non"):
        plan_skill_undo(place(tmp_path))
    assert below(tmp_path) == before


def test_undo_without_a_setup_says_so(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="nothing to undo"):
        plan_skill_undo(place(tmp_path))


def test_a_client_without_a_folder_is_refused_with_what_it_has(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"Claude Desktop reads no skills.* MCP server is entered"):
        plan_skill(place(tmp_path, "claude-desktop", "user"))


def test_links_and_other_folders_are_left_alone(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = written(tmp_path)
    (folder / "link.md").symlink_to(elsewhere / "x.md")
    with pytest.raises(SetupError, match=r"link\.md is no ordinary file"):
        plan_skill(place(tmp_path))
    carry_out_skill(plan_skill(place(tmp_path, "codex")))
    other = tmp_path / "project/.agents/skills/kopt"
    other.rename(tmp_path / "moved")
    other.symlink_to(tmp_path / "project", target_is_directory=True)
    with pytest.raises(SetupError, match=r"is a link to .*remove the link first"):
        plan_skill(place(tmp_path, "codex"))
    (tmp_path / "project/.cursor").symlink_to(elsewhere, target_is_directory=True)
    with pytest.raises(SetupError, match="leads out of the project"):
        plan_skill(place(tmp_path, "cursor"))
    big = tmp_path / "project/.opencode/skills/kopt"
    big.mkdir(parents=True)
    (big / "weights").write_bytes(b"x" * (5 << 20))
    with pytest.raises(SetupError, match="holds more than a skill does"):
        plan_skill(place(tmp_path, "opencode"))
    (tmp_path / "project/.gemini/skills").mkdir(parents=True)
    (tmp_path / "project/.gemini/skills/kopt").write_text("a file")
    with pytest.raises(SetupError, match="is no folder"):
        plan_skill(place(tmp_path, "gemini"))


@pytest.mark.parametrize(
    "text", ["no json", "[]", json.dumps({"../../x": "y"}), '{"/x": "y"}', '{"a\\u0000": "y"}']
)
def test_a_backup_that_kopt_did_not_write_is_not_put_back(text: str, tmp_path: Path) -> None:
    folder = written(tmp_path)
    (backup,) = folder.parent.glob("*.absent")
    backup.with_suffix(".bak").write_text(text)
    backup.unlink()
    with pytest.raises(SetupError, match="no backup that kopt wrote"):
        plan_skill_undo(place(tmp_path))
    assert texts(folder) == dict(skill_files())


def test_a_change_in_the_meantime_is_noticed(tmp_path: Path) -> None:
    change = plan_skill(place(tmp_path))
    change.path.mkdir(parents=True)
    (change.path / "SKILL.md").write_text("mine\n")
    with pytest.raises(SetupError, match="has changed in the meantime"):
        carry_out_skill(change)
    assert texts(change.path) == {"SKILL.md": b"mine\n"}


def test_a_disk_that_fails_midway_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = below(place(tmp_path).project)
    done: list[Path] = []

    def failing(path: Path, data: bytes, *, mode: int) -> None:
        if len(done) == 2:
            raise OSError(28, "No space left on device")
        done.append(path)
        write_atomically(path, data, mode=mode)

    monkeypatch.setattr("kopt.server.clients.skill_folder.write_atomically", failing)
    with pytest.raises(SetupError, match="No space left on device"):
        written(tmp_path)
    assert len(done) == 2
    assert below(tmp_path / "project") == before


def test_a_file_of_the_user_outlives_every_later_version_of_kopt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = {"SKILL.md": b"1\n", "references/gone.md": b"x\n"}
    monkeypatch.setattr(skill_folder, "skill_files", lambda: shipped)
    folder = written(tmp_path)
    (folder / "mine.md").write_text("my notes\n")
    for version in (b"2\n", b"3\n"):
        shipped["SKILL.md"] = version
        carry_out_skill(plan_skill(place(tmp_path)))
    shipped = {"SKILL.md": b"4\n"}
    change = plan_skill(place(tmp_path))
    assert change.replaced == ()
    carry_out_skill(change)
    assert texts(folder)["mine.md"] == b"my notes\n"


def test_a_folder_that_cannot_be_listed_is_not_taken_for_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path)
    locked = folder / "references"

    def refusing(path: str | Path) -> list[str]:  # as for a user who is not root
        if Path(path) == locked:
            raise PermissionError(13, "Permission denied", str(path))
        return listdir(path)

    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", refusing)
    with pytest.raises(SetupError, match=r"cannot read .*references: Permission denied; nothing"):
        plan_skill(place(tmp_path))


def test_a_folder_that_cannot_be_looked_into_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_symlink", refusing)
    for scope in ("user", "project"):
        with pytest.raises(SetupError, match=r"cannot read .*kopt: Permission denied; nothing was"):
            plan_skill(place(tmp_path, "claude", "user" if scope == "user" else "project"))


def test_undo_of_a_folder_that_is_gone_says_so(tmp_path: Path) -> None:
    folder = written(tmp_path)
    folder.rename(tmp_path / "moved")
    with pytest.raises(ToolError, match="nothing to undo: somebody has removed"):
        plan_skill_undo(place(tmp_path))


def test_an_undo_that_fails_midway_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = {"SKILL.md": b"old\n", "references/replies.md": b"y\n"}
    monkeypatch.setattr(skill_folder, "skill_files", lambda: older)
    written(tmp_path)
    monkeypatch.undo()
    written(tmp_path)
    before = below(tmp_path)

    def failing(path: Path, data: bytes, *, mode: int) -> None:
        if data == b"y\n":
            raise OSError(28, "No space left on device")
        write_atomically(path, data, mode=mode)

    monkeypatch.setattr("kopt.server.clients.skill_folder.write_atomically", failing)
    with pytest.raises(SetupError, match="No space left on device"):
        carry_out_skill(plan_skill_undo(place(tmp_path)))
    assert below(tmp_path) == before
