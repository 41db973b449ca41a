"""Git repositories: what is read, what of them takes no effect, and what is refused."""

import random
import shutil
import socket
from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.tools.docs.library import git_program, git_sources
from kopt.tools.docs.library.git_program import without_credentials
from kopt.tools.docs.library.git_sources import Snapshot, git_choice, snapshot
from kopt.tools.docs.library.pins import pins
from kopt.tools.docs.sources import SourceUnavailable
from support.archives import KERNEL
from support.git_repository import commit_files, git

TABLE = random.Random(7).randbytes(500_000)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a home of this test."""
    return Settings(home=tmp_path / "home")


def _snapshot(folder: Path, settings: Settings) -> Snapshot:
    return snapshot(git_choice(str(folder)).repositories[0], settings)


def test_sources_of_the_last_commit_are_read(tmp_path: Path, settings: Settings) -> None:
    commit = commit_files(tmp_path / "repo", {"csrc/a.cu": KERNEL, "readme.md": b"text"})
    (tmp_path / "repo" / "uncommitted.cu").write_bytes(KERNEL)
    assert _snapshot(tmp_path / "repo", settings) == Snapshot(commit, (("csrc/a.cu", KERNEL),))


def test_next_call_fetches_what_is_new(tmp_path: Path, settings: Settings) -> None:
    commit_files(tmp_path / "repo", {"a.cu": KERNEL})
    _snapshot(tmp_path / "repo", settings)
    second = commit_files(tmp_path / "repo", {"b.cu": KERNEL})
    assert _snapshot(tmp_path / "repo", settings).commit == second


def test_last_state_serves_where_the_repository_cannot_be_reached(
    tmp_path: Path, settings: Settings
) -> None:
    folder = tmp_path / "repo"
    commit = commit_files(folder, {"a.cu": KERNEL, "table.cu": TABLE})
    choice = git_choice(str(folder))
    snapshot(choice.repositories[0], settings)
    shutil.rmtree(folder)
    assert snapshot(choice.repositories[0], settings).commit == commit


def test_large_blob_is_not_fetched(tmp_path: Path, settings: Settings) -> None:
    commit_files(tmp_path / "repo", {"a.cu": KERNEL, "table.cu": TABLE})
    assert dict(_snapshot(tmp_path / "repo", settings).members) == {"a.cu": KERNEL}
    fetched = (settings.docs_cache / "git").rglob("*")
    assert sum(path.stat().st_size for path in fetched if path.is_file()) < len(TABLE) / 2


def test_large_blob_is_left_out_where_the_server_cannot_filter(
    tmp_path: Path, settings: Settings
) -> None:
    commit_files(tmp_path / "repo", {"table.cu": bytes(500_000), "z.cu": KERNEL})
    git(tmp_path / "repo", "config", "uploadpack.allowFilter", "false")
    assert dict(_snapshot(tmp_path / "repo", settings).members) == {"z.cu": KERNEL}


def _nested_trees(folder: Path, levels: int) -> None:
    """Commit ten equal folders in each of ten equal folders, and so on: 10**levels files."""
    commit_files(folder, {"a.cu": KERNEL})
    tree = git(folder, "rev-parse", "HEAD^{tree}")
    for _ in range(levels):
        listing = "".join(f"040000 tree {tree}\td{at}\n" for at in range(10))
        (folder / "listing").write_text(listing, encoding="utf-8")
        tree = git(folder, "-c", f"alias.make=!git mktree <{folder}/listing", "make")
    git(folder, "update-ref", "HEAD", git(folder, "commit-tree", "-m", "nested", tree))


@pytest.mark.slow  # reads megabytes
def test_endless_listing_is_refused_as_it_comes(tmp_path: Path, settings: Settings) -> None:
    _nested_trees(tmp_path / "repo", levels=9)
    with pytest.raises(SourceUnavailable, match="more than 200,000 files"):
        _snapshot(tmp_path / "repo", settings)


def test_content_of_many_paths_is_read_once_and_counted_for_each(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    _nested_trees(tmp_path / "repo", levels=2)
    contents = [data for _, data in _snapshot(tmp_path / "repo", settings).members]
    assert len(contents) == 100
    assert all(data is contents[0] for data in contents)
    monkeypatch.setattr(git_sources, "MAX_BYTES", 99 * len(KERNEL))
    with pytest.raises(SourceUnavailable, match="bytes of sources"):
        _snapshot(tmp_path / "repo", settings)


def test_links_are_left_out(tmp_path: Path, settings: Settings) -> None:
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "link.cu").symlink_to("/etc/passwd")
    commit_files(folder, {"a.cu": KERNEL})
    assert dict(_snapshot(folder, settings).members) == {"a.cu": KERNEL}


def test_hooks_of_the_user_do_not_run(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = tmp_path / "hooks" / "reference-transaction"
    hook.parent.mkdir()
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n", encoding="utf-8")
    hook.chmod(0o755)
    (tmp_path / "config").write_text(f"[core]\nhooksPath = {hook.parent}\n", encoding="utf-8")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    commit_files(tmp_path / "repo", {"a.cu": KERNEL})
    _snapshot(tmp_path / "repo", settings)
    assert not (tmp_path / "ran").exists()


def test_repository_that_kopt_is_started_from_stays_out_of_it(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_files(tmp_path / "other", {"other.cu": KERNEL})
    before = sorted((tmp_path / "other" / ".git").rglob("*"))
    commit_files(tmp_path / "repo", {"a.cu": KERNEL})
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "other" / ".git" / "objects"))
    assert dict(_snapshot(tmp_path / "repo", settings).members) == {"a.cu": KERNEL}
    assert sorted((tmp_path / "other" / ".git").rglob("*")) == before


def test_killed_clone_leaves_nothing_that_is_taken_for_one(
    tmp_path: Path, settings: Settings
) -> None:
    commit = commit_files(tmp_path / "repo", {"a.cu": KERNEL})
    _snapshot(tmp_path / "repo", settings)
    clone = next((settings.docs_cache / "git").glob("repo-*.git"))
    (clone / "HEAD").unlink()
    assert _snapshot(tmp_path / "repo", settings).commit == commit


@pytest.mark.parametrize("folder", ["nothing", "empty"])
def test_folder_without_commits_is_one_line(
    tmp_path: Path, settings: Settings, folder: str
) -> None:
    (tmp_path / "nothing").mkdir()
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "--quiet")
    with pytest.raises(SourceUnavailable, match=r"git cannot get it: fatal: .+") as refused:
        _snapshot(tmp_path / folder, settings)
    assert "\n" not in str(refused.value)


def test_missing_git_says_what_to_install(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "repo").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SourceUnavailable, match="install it"):
        _snapshot(tmp_path / "repo", settings)


def test_password_of_an_address_is_in_no_message(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    choice = git_choice("http://me:s3cret@127.0.0.1:1/repo.git")
    with pytest.raises(SourceUnavailable, match=r"127\.0\.0\.1") as refused:
        snapshot(choice.repositories[0], settings)
    assert "s3cret" not in str(refused.value)


def test_silent_server_is_given_up(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(git_program, "GIT_TIMEOUT_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        choice = git_choice(f"http://127.0.0.1:{silent.getsockname()[1]}/repo.git")
        with pytest.raises(SourceUnavailable, match=r"git took more than"):
            snapshot(choice.repositories[0], settings)
    assert list((settings.docs_cache / "git").glob(".new-*")) == []


@pytest.mark.parametrize(
    "address",
    [
        "https://me:s3cret@host/repo.git",
        "https://s3cret@host/repo.git",
        "https://me:s3?cr#et@host/repo.git",
        "https://host/repo.git?token=s3cret#s3cret",
        "https://host/repo.git#s3cret",
    ],
)
def test_address_is_shown_without_what_gives_access(address: str) -> None:
    shown = without_credentials(f"unable to access '{address}': refused")
    assert shown == "unable to access 'https://host/repo.git': refused"


@pytest.mark.parametrize(
    "text",
    [
        "https://[host/a",
        "--upload-pack=touch /tmp/x",
        "-u",
        "ext::sh -c true",
        "ssh://-oProxyCommand=true/repo",
        "-oProxyCommand=true@host:repo",
        "me@-oProxyCommand:repo",
        "https://host/a --upload-pack=x",
        "no-such-folder",
        "",
        "~nobody-of-that-name/repo",
        "a\0b",
    ],
)
def test_what_is_no_repository_is_refused(text: str) -> None:
    with pytest.raises(ToolError, match="is no repository"):
        git_choice(text)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("apex", "apex"),
        ("https://github.com/nvidia/apex", "apex"),
        ("https://github.com/someone/apex.git", "someone-apex"),
        ("git@host.org:team/Fast_Kernels.git", "fast_kernels"),
        ("ssh://git@host.org/team/docs/", "team-docs"),
        ("https://host.org/team/k%20ernels", "k-20ernels"),
        ("https://oauth2:s3cret@host.org/", "host-org"),
        ("https://oauth2:s3cret@host.org/vllm.git", "host-org-vllm"),
        ("https://s3cret@host.org:8443", "host-org"),
        ("https://host.org/team/repo.git?private_token=s3cret", "repo"),
        ("https://host.org/team/repo.git#s3cret/x", "repo"),
    ],
)
def test_source_is_named_after_its_repository(text: str, key: str) -> None:
    assert git_choice(text).key == key


def test_known_repositories_are_those_of_the_pins() -> None:
    assert git_choice("triton").repositories == pins().repositories["triton"]
