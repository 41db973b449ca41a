"""Pinned files: what is kept, resumed, refused and said."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.tools.docs.library import package_index
from kopt.tools.docs.library.download import MOST_ATTEMPTS, downloads_folder, pinned_file
from kopt.tools.docs.library.pins import PackagePin
from kopt.tools.docs.sources import SourceUnavailable
from support.archives import pin_of
from support.package_server import PackageServer

DATA = bytes(range(256)) * 400
PIN = pin_of(DATA)


def _fetch(settings: Settings, pin: PackagePin = PIN) -> Path:
    return pinned_file(pin, settings, lambda done, total: None)


def _refusal(settings: Settings, pin: PackagePin = PIN) -> str:
    with pytest.raises(SourceUnavailable) as refused:
        _fetch(settings, pin)
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.fixture(autouse=True)
def served_file(server: PackageServer) -> None:
    """Serve the pinned file."""
    server.files[PIN.filename] = DATA


def _part(settings: Settings) -> Path:
    return downloads_folder(settings) / f"{PIN.filename}.part"


def test_file_is_downloaded_and_kept(server: PackageServer, settings: Settings) -> None:
    first = _fetch(settings)
    asked = len(server.asked)
    assert _fetch(settings) == first
    assert first.read_bytes() == DATA
    assert len(server.asked) == asked


@pytest.mark.parametrize("form", ["json", "html"])
def test_both_forms_of_the_index_are_read(
    server: PackageServer, settings: Settings, form: str
) -> None:
    server.form = "html" if form == "html" else "json"
    assert _fetch(settings).read_bytes() == DATA


def test_cut_download_goes_on_where_it_ended(server: PackageServer, settings: Settings) -> None:
    server.faults.extend(["cut", "cut"])
    assert _fetch(settings).read_bytes() == DATA
    spans = server.file_requests
    assert spans[0] == ""
    assert 0 < int(spans[1].removeprefix("bytes=").rstrip("-")) < len(DATA)


def test_next_run_goes_on_where_the_last_ended(server: PackageServer, settings: Settings) -> None:
    for _ in range(MOST_ATTEMPTS):
        server.faults.append("cut")
    assert f"of {len(DATA):,} bytes are kept" in _refusal(settings)
    kept = _part(settings).stat().st_size
    assert _fetch(settings).read_bytes() == DATA
    assert server.file_requests[-1] == f"bytes={kept}-"


def test_server_without_ranges_sends_all_of_it_again(
    server: PackageServer, settings: Settings
) -> None:
    server.has_ranges = False
    _part(settings).write_bytes(DATA[:1000])
    assert _fetch(settings).read_bytes() == DATA
    assert len(server.file_requests) == 1


def test_remains_of_another_file_are_replaced(server: PackageServer, settings: Settings) -> None:
    _part(settings).write_bytes(b"x" * 1000)
    assert _fetch(settings).read_bytes() == DATA


def test_damaged_file_is_fetched_again(server: PackageServer, settings: Settings) -> None:
    _fetch(settings).write_bytes(DATA[:-1])
    assert _fetch(settings).read_bytes() == DATA


def test_file_with_another_hash_is_deleted_unread(
    server: PackageServer, settings: Settings
) -> None:
    server.files[PIN.filename] = DATA[:-1] + b"!"
    assert "deleted unread" in _refusal(settings)
    assert not _part(settings).exists()
    assert not (downloads_folder(settings) / PIN.filename).exists()


def test_endless_file_is_cut_off(server: PackageServer, settings: Settings) -> None:
    server.files[PIN.filename] = DATA * 100
    seen: list[int] = []
    with pytest.raises(SourceUnavailable, match="deleted unread"):
        pinned_file(PIN, settings, lambda done, total: seen.append(done))
    assert max(seen) < 10 * len(DATA)


@pytest.mark.parametrize(
    ("status", "said"),
    [(404, "does not have"), (403, "credentials in PIP_INDEX_URL"), (503, "try again later")],
)
def test_refusing_file_host_is_named_with_what_to_do(
    server: PackageServer, settings: Settings, status: int, said: str
) -> None:
    server.faults.append(status)
    assert said in _refusal(settings)


def test_unknown_project_names_the_variable_to_set(
    server: PackageServer, settings: Settings
) -> None:
    server.index_status = 404
    assert "does not have tiny: set PIP_INDEX_URL" in _refusal(settings)


def test_index_without_the_pinned_file_says_so(server: PackageServer, settings: Settings) -> None:
    assert "does not list tiny-2.0.whl" in _refusal(settings, pin_of(DATA, "tiny-2.0.whl"))


def test_login_page_in_place_of_an_index_is_recognized(
    server: PackageServer, settings: Settings
) -> None:
    server.form = "nonsense"
    assert "does not answer as a package index" in _refusal(settings)


@pytest.mark.parametrize(
    "page",
    [
        ("application/json", b"[" * 200_000),
        ("application/json", b"9" * 5000),
        ("application/json", b'{"files": 1}'),
        ("text/html", b"<![broken["),
    ],
)
def test_page_that_cannot_be_parsed_is_one_line(
    server: PackageServer, settings: Settings, page: tuple[str, bytes]
) -> None:
    server.page = page
    assert "PIP_INDEX_URL" in _refusal(settings)


@pytest.mark.parametrize("charset", ["zlib", "undefined", "rot13", "idna"])
def test_page_is_utf_8_whatever_it_says(
    server: PackageServer, settings: Settings, charset: str
) -> None:
    server.page = (f"text/html; charset={charset}", b"\xff<a href=x>other.whl</a>")
    assert "does not list" in _refusal(settings)


def test_endless_page_is_read_no_further_than_allowed(
    server: PackageServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package_index, "MOST_PAGE_BYTES", 1000)
    server.page = ("application/json", b" " * 1001)
    assert "more than 1,000 bytes" in _refusal(settings)


@pytest.mark.parametrize("index", ["file:///srv/simple", "pypi.org/simple", "http://", "::"])
def test_index_that_is_no_web_address_is_refused(tmp_path: Path, index: str) -> None:
    assert "PIP_INDEX_URL" in _refusal(Settings(home=tmp_path, package_index=index))


def test_no_network_points_to_installed_packages(tmp_path: Path) -> None:
    closed = Settings(home=tmp_path, package_index="http://127.0.0.1:1/simple")
    assert "--installed" in _refusal(closed)


def test_proxy_that_cannot_be_used_is_named(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_PROXY")
    monkeypatch.setenv("HTTP_PROXY", "gopher://127.0.0.1:1")
    assert "HTTP_PROXY" in _refusal(settings)


def test_proxy_that_is_down_is_named(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_PROXY")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert "proxy" in _refusal(settings)


def test_full_disk_names_the_folder(server: PackageServer, settings: Settings) -> None:
    _part(settings).symlink_to("/dev/full")
    refusal = _refusal(settings)
    assert str(downloads_folder(settings)) in refusal
    assert "No space left" in refusal


def test_credentials_reach_the_index_and_its_files_but_no_message(
    server: PackageServer, tmp_path: Path
) -> None:
    index = server.index.replace("http://", "http://me:s3cret@")
    mirror = Settings(home=tmp_path, package_index=index)
    _fetch(mirror)
    assert all(sent.startswith("Basic ") for sent in server.authorizations)
    server.index_status = 401
    assert "s3cret" not in _refusal(mirror, pin_of(DATA, "tiny-2.0.whl")) + repr(mirror)


def test_two_at_once_download_once(server: PackageServer, settings: Settings) -> None:
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(_fetch, settings) for _ in range(2)]
    assert both[0].result() == both[1].result()
    assert len(server.file_requests) == 1


def test_progress_counts_up_to_the_whole(server: PackageServer, settings: Settings) -> None:
    seen: list[tuple[int, int | None]] = []
    server.faults.append("cut")
    pinned_file(PIN, settings, lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(DATA), len(DATA))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
