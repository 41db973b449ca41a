"""Files and folders that are whole or absent, and folders that code is run from."""

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kopt.config.errors import SetupError
from kopt.config.files import (
    content_hash,
    create_file,
    ensure_folder,
    ensure_trusted_folder,
    evict_least_used,
    is_trusted_file,
    publish_folder,
    put_in_place,
    remove_folder,
    replacing_file,
    staging_folder,
    sweep_abandoned,
    write_atomically,
)


def test_every_folder_that_is_made_is_the_user_s_alone(tmp_path: Path) -> None:
    umask = os.umask(0o002)
    try:
        ensure_folder(tmp_path / "home" / "cache" / "sandbox")
    finally:
        os.umask(umask)
    made = [path for path in tmp_path.rglob("*") if path.is_dir()]
    assert [path.stat().st_mode & 0o777 for path in made] == [0o700] * 3


@pytest.mark.parametrize("loose", ["home", "home/cache", "home/cache/sandbox"])
@pytest.mark.parametrize("mode", [0o770, 0o702, 0o1777])
def test_a_folder_that_others_can_write_is_refused_with_the_command(
    loose: str, mode: int, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    ensure_trusted_folder(home / "cache" / "sandbox", home)
    (tmp_path / loose).chmod(mode)
    with pytest.raises(SetupError, match=f"chmod go-w {tmp_path / loose}; else"):
        ensure_trusted_folder(home / "cache" / "sandbox", home)


def test_a_folder_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure_trusted_folder(tmp_path / "cache", tmp_path)
    if os.geteuid() == 0:  # root's own are nobody's fault
        os.chown(tmp_path / "cache", 65534, 65534)
    else:
        other = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: other)
    with pytest.raises(SetupError, match="belongs to another user"):
        ensure_trusted_folder(tmp_path / "cache", tmp_path)


def test_a_file_that_others_could_have_written_is_not_trusted(tmp_path: Path) -> None:
    path = tmp_path / "launcher"
    assert not is_trusted_file(path)
    path.touch(0o700)
    assert is_trusted_file(path)
    (tmp_path / "link").symlink_to(path)
    assert not is_trusted_file(tmp_path / "link")
    path.chmod(0o770)
    assert not is_trusted_file(path)


def _steps(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> list[str]:
    """Return what `act` syncs, renames and links, in order: `sync NAME` or `name NAME`."""
    steps: list[str] = []
    real_sync, real_link = os.fsync, os.link

    def fsync(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        steps.append(f"sync {'new' if path.name.startswith('.new-') else path.name}")
        real_sync(descriptor)

    def link(source: str, target: Path) -> None:
        steps.append(f"name {target.name}")
        real_link(source, target)

    def told(real: Callable[[Path, Path], Path]) -> Callable[[Path, Path], Path]:
        def move(source: Path, target: Path) -> Path:
            steps.append(f"name {target.name}")
            return real(source, target)

        return move

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fsync)
        patched.setattr(os, "link", link)
        patched.setattr(Path, "replace", told(Path.replace))
        patched.setattr(Path, "rename", told(Path.rename))
        act()
    return steps


def test_data_is_on_the_disk_before_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    in_order = ["sync new", "name file", "sync home"]
    assert _steps(monkeypatch, lambda: write_atomically(home / "file", "x")) == in_order
    (home / "file").unlink()
    assert _steps(monkeypatch, lambda: create_file(home / "file", b"x")) == in_order
    part = home / ".new-part"
    part.write_text("x")
    assert _steps(monkeypatch, lambda: put_in_place(part, home / "file")) == in_order

    def publish() -> None:
        with staging_folder(home / "folder") as staging:
            (staging / "inner").write_text("x")
            publish_folder(staging, home / "folder", durable=True)

    assert _steps(monkeypatch, publish) == ["sync inner", "sync new", "name folder", "sync home"]


_RENAMES = re.compile(r"os\.(replace|rename|link)\(|\.rename\(|\.replace\([^,()]*\)|shutil\.move")
_MAY_RENAME = {
    "config/files.py",
    "search/knowledge/store.py",  # moves a damaged base away, which is old
    "server/resident/local_door.py",  # a socket that listens, which no file can replace
    "tools/remote/bootstrap.py",  # has nothing of kopt yet, and writes all to the disk before
    "server/pool/seat.py",  # likewise, on the nodes of a cluster
}


def test_nothing_but_the_module_of_files_renames() -> None:
    """A rename elsewhere could put a name before its data: `put_in_place` is there for it."""
    root = Path(__file__).parents[2]
    modules = [
        path
        for folder in ("config", "kernels", "tools", "search", "server")
        for path in (root / folder).rglob("*.py")
    ]
    found = {
        str(path.relative_to(root))
        for path in modules
        if "/templates/" not in str(path) and _RENAMES.search(path.read_text("utf-8"))
    }
    assert found == _MAY_RENAME


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_replaced_whole(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "state.json"
    write_atomically(path, "old", durable=durable)
    write_atomically(path, b"new", durable=durable)
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_gets_the_mode_that_is_asked_for(tmp_path: Path) -> None:
    write_atomically(tmp_path / "winner.cu", "source", mode=0o644)
    assert (tmp_path / "winner.cu").stat().st_mode & 0o777 == 0o644


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text("old")
    with pytest.raises(OSError, match="No space"), replacing_file(path) as fresh:
        fresh.write_text("half")
        raise OSError(28, "No space left on device")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_put_in_place_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        write_atomically(tmp_path / "taken", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_of_several_creators_the_first_decides_the_content(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    create_file(path, b"first")
    create_file(path, b"second")
    assert path.read_bytes() == b"first"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def _publish(folder: Path, text: str, replaces: bool = False) -> None:
    with staging_folder(folder) as staging:
        (staging / "file").write_text(text)
        publish_folder(staging, folder, replaces=replaces, durable=True)


def test_of_several_published_folders_the_first_stays(tmp_path: Path) -> None:
    folder = tmp_path / "entry"
    _publish(folder, "first")
    _publish(folder, "second")
    assert (folder / "file").read_text() == "first"
    assert list(tmp_path.iterdir()) == [folder]


def test_a_damaged_folder_gives_way_where_it_is_to_be_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "entry"
    _publish(folder, "damaged")
    _publish(folder, "sound", replaces=True)
    assert (folder / "file").read_text() == "sound"
    assert list(tmp_path.iterdir()) == [folder]


def test_a_folder_that_is_not_published_vanishes(tmp_path: Path) -> None:
    with staging_folder(tmp_path / "entry") as staging:
        (staging / "file").write_text("text")
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "entry").write_text("a file")
    with pytest.raises(OSError, match="entry"):
        _publish(tmp_path / "entry", "text")


def test_removing_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    remove_folder(tmp_path / "gone")
    assert list(tmp_path.iterdir()) == []


def _entry(root: Path, name: str, used_s: float) -> Path:
    path = root / name
    path.mkdir()
    os.utime(path, (used_s, used_s))
    return path


def test_the_entries_not_used_for_longest_are_evicted(tmp_path: Path) -> None:
    first, second, third = (_entry(tmp_path, name, 10.0 * at) for at, name in enumerate("cab"))
    evict_least_used(tmp_path, 3)
    assert first.is_dir()
    evict_least_used(tmp_path, 50, lambda path: 40 if path == second else 10)
    assert not first.exists()
    assert second.is_dir() and third.is_dir()


def test_remains_of_a_dead_process_are_evicted_first_and_a_living_one_s_never(
    tmp_path: Path,
) -> None:
    kept = _entry(tmp_path, "kept", 10.0)
    remains = _entry(tmp_path, ".new-4194304999-abc", 20.0)  # above the largest process id of Linux
    with staging_folder(tmp_path / "other") as staging:
        evict_least_used(tmp_path, 1)
        assert kept.is_dir() and staging.is_dir() and not remains.exists()


def test_an_entry_that_vanishes_meanwhile_is_passed_over(tmp_path: Path) -> None:
    """A link to nowhere is listed and has no state, as a folder that is gone by then."""
    (tmp_path / "gone").symlink_to("nowhere")
    first, second = _entry(tmp_path, "a", 10.0), _entry(tmp_path, "b", 20.0)
    evict_least_used(tmp_path, 1)
    assert not first.exists() and second.is_dir()


def test_where_one_part_ends_and_the_next_begins_changes_the_hash() -> None:
    assert content_hash(["ab", "c"]) != content_hash(["a", "bc"])
    assert content_hash(["ab", b"c"]) == content_hash([b"ab", "c"])
    assert len(content_hash([])) == 64


def test_what_a_killed_process_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    dead, alive, hour_ago = 4194304999, os.getpid(), time.time() - 3700
    names = [f".new-{dead}-a", f".new-{alive}-b", f".new-{dead}-young", "kept"]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("x")
    (tmp_path / f".new-{dead}-file").touch()
    for path in tmp_path.iterdir():
        if not path.name.endswith("young"):
            os.utime(path, (hour_ago, hour_ago))
    sweep_abandoned(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[1:])
