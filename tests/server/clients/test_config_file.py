"""Files of a project that somebody else wrote: links and backups that kopt did not make."""

from pathlib import Path

import pytest

from kopt.config.errors import SetupError, ToolError
from kopt.server.clients.change import carry_out, plan_entry, plan_undo
from kopt.server.clients.config_file import digest_of
from kopt.server.clients.known_clients import CLIENTS
from support.client_files import LOCAL, below, place_of, with_others

VSCODE = CLIENTS["vscode"]


@pytest.mark.parametrize("goes_to", ["elsewhere/there.json", "elsewhere/missing.json"])
def test_a_link_of_a_project_that_leads_out_is_refused(goes_to: str, tmp_path: Path) -> None:
    place = place_of(VSCODE, tmp_path)
    path, target = place.files[-1], tmp_path / goes_to
    path.parent.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "there.json").write_text("{}")
    path.symlink_to(target)
    before = below(tmp_path)
    with pytest.raises(SetupError, match=f"leads out of the project, to {target}"):
        plan_entry(place, LOCAL)
    assert below(tmp_path) == before


def test_a_folder_of_a_project_that_leads_out_is_refused(tmp_path: Path) -> None:
    place = place_of(VSCODE, tmp_path)
    (tmp_path / "elsewhere").mkdir()
    place.files[-1].parent.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SetupError, match="leads out of the project"):
        plan_entry(place, LOCAL)


def test_a_link_that_leads_out_after_it_was_shown_is_refused(tmp_path: Path) -> None:
    place = place_of(VSCODE, tmp_path)
    path = with_others(place)
    change = plan_entry(place, LOCAL)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SetupError, match="leads out of the project"):
        carry_out(change, place.name)


def test_a_link_of_a_project_to_nothing_is_refused(tmp_path: Path) -> None:
    place = place_of(VSCODE, tmp_path)
    path = place.files[-1]
    path.parent.mkdir()
    path.symlink_to("missing.json")
    with pytest.raises(SetupError, match="which is not there"):
        plan_entry(place, LOCAL)


@pytest.mark.parametrize(
    ("ending", "data"),
    [
        ("absent", b"{broken"),
        ("absent", b"\xff"),
        ("absent", b"[" * 100_000),
        ("absent", b"[1]"),
        ("absent", b"{}"),
        ("absent", b'{"folders_made": "1"}'),
        ("absent", b'{"folders_made": true}'),
        ("absent", b'{"folders_made": -1}'),
        ("absent", b'{"folders_made": 99}'),
        ("absent", None),
        ("bak", None),
    ],
)
def test_what_only_has_the_name_of_a_backup_is_named_by_undo(
    ending: str, data: bytes | None, tmp_path: Path
) -> None:
    place = place_of(VSCODE, tmp_path)
    path = with_others(place)
    digest = digest_of(path.read_bytes())
    planted = path.with_name(f"{path.name}.kopt-20260101-000000-000000-kopt-{digest}.{ending}")
    if data is None:
        secret = tmp_path / "secret"
        secret.write_text("private")
        planted.symlink_to(secret)
    else:
        planted.write_bytes(data)
    before = below(tmp_path)
    with pytest.raises(SetupError, match=f"{planted} is no backup that kopt wrote"):
        plan_undo(place)
    assert below(tmp_path) == before


def test_a_planted_backup_for_another_file_is_not_put_back(tmp_path: Path) -> None:
    place = place_of(VSCODE, tmp_path)
    path = with_others(place)
    name = f"{path.name}.kopt-20260101-000000-000000-kopt-{'0' * 16}.bak"
    path.with_name(name).write_text("{}")
    with pytest.raises(ToolError, match="has changed since kopt wrote it"):
        plan_undo(place)
