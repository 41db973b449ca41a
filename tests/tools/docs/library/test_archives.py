"""Members of archives, hostile ones among them."""

import io
import struct
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kopt.tools.docs.library import archives
from kopt.tools.docs.library.archives import ALL_MEMBERS, archive_members, members_digest
from kopt.tools.docs.library.file_filter import MAX_FILE_BYTES
from kopt.tools.docs.library.pins import MemberRule, Rules
from kopt.tools.docs.sources import SourceUnavailable
from support.archives import KERNEL, sdist, wheel

Make = Callable[[Mapping[str, bytes]], bytes]
both_forms = pytest.mark.parametrize(("make", "name"), [(wheel, "a.whl"), (sdist, "a.tar.gz")])


def _read(folder: Path, data: bytes, name: str, rules: Rules = ALL_MEMBERS) -> dict[str, bytes]:
    path = folder / name
    path.write_bytes(data)
    return dict(archive_members(path, rules))


@both_forms
def test_wanted_sources_are_read(tmp_path: Path, make: Make, name: str) -> None:
    data = make({"pkg/a.cu": KERNEL, "pkg/readme.md": b"text", "pkg/tests/b.cu": KERNEL})
    assert _read(tmp_path, data, name) == {"pkg/a.cu": KERNEL}


@both_forms
def test_rules_select_and_strip(tmp_path: Path, make: Make, name: str) -> None:
    rules = (MemberRule(under="pkg/csrc/", strip="pkg/"), MemberRule(under="pkg/", suffix=".py"))
    data = make({"pkg/csrc/a.cu": KERNEL, "pkg/b.py": b"x", "pkg/c.cu": b"y", "other.py": b"z"})
    assert _read(tmp_path, data, name, rules) == {"csrc/a.cu": KERNEL, "pkg/b.py": b"x"}


@both_forms
@pytest.mark.parametrize("member", ["../a.cu", "/etc/a.cu", "pkg/../../a.cu", "pkg\\..\\a.cu"])
def test_archive_that_leads_out_of_itself_is_refused(
    tmp_path: Path, make: Make, name: str, member: str
) -> None:
    with pytest.raises(SourceUnavailable, match="leads out of it"):
        _read(tmp_path, make({"pkg/ok.cu": KERNEL, member: KERNEL}), name)


@both_forms
def test_huge_member_is_left_out(tmp_path: Path, make: Make, name: str) -> None:
    data = make({"bomb.cu": bytes(5_000_000), "a.cu": KERNEL})
    assert len(data) < 100_000
    assert _read(tmp_path, data, name) == {"a.cu": KERNEL}


def test_member_that_hides_its_size_is_not_unpacked(tmp_path: Path) -> None:
    data = wheel({"bomb.cu": bytes(5_000_000)})
    lie = data.replace(struct.pack("<I", 5_000_000), struct.pack("<I", MAX_FILE_BYTES))
    assert lie != data
    tracemalloc.start()
    with pytest.raises(SourceUnavailable, match=r"a\.whl cannot be read"):
        _read(tmp_path, lie, "a.whl")
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 4 * MAX_FILE_BYTES


@both_forms
@pytest.mark.parametrize("kept", [0.0, 0.5, 0.9])
def test_damaged_archive_is_one_line(tmp_path: Path, make: Make, name: str, kept: float) -> None:
    noise = bytes(byte * 7919 % 251 for byte in range(5000))
    data = make({"a.cu": noise, "b.cu": noise})
    with pytest.raises(SourceUnavailable, match="cannot be read"):
        _read(tmp_path, data[: int(len(data) * kept)], name)


@both_forms
def test_too_many_members_are_refused(
    tmp_path: Path, make: Make, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_MEMBERS", 2)
    with pytest.raises(SourceUnavailable, match="2 members"):
        _read(tmp_path, make({"a.cu": b"", "b.cu": b"", "c.cu": b""}), name)


def test_a_directory_that_would_fill_the_memory_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = wheel({f"{number}.cu": KERNEL for number in range(40)})
    assert len(_read(tmp_path, data, "a.whl")) == 40
    monkeypatch.setattr(archives, "MAX_DIRECTORY_BYTES", 40 * 46)
    with pytest.raises(SourceUnavailable, match="more members than any library"):
        _read(tmp_path, data, "a.whl")


def test_a_directory_whose_size_is_stated_elsewhere_is_refused(tmp_path: Path) -> None:
    data = wheel({"a.cu": KERNEL})
    locator = b"PK\6\7" + bytes(16)
    with pytest.raises(SourceUnavailable, match="more members than any library"):
        _read(tmp_path, data[:-22] + locator + data[-22:], "a.whl")


def test_an_archive_with_a_comment_is_read(tmp_path: Path) -> None:
    file = io.BytesIO(wheel({"a.cu": KERNEL}))
    with zipfile.ZipFile(file, "a") as archive:
        archive.comment = b"made by hand"
    assert _read(tmp_path, file.getvalue(), "a.whl") == {"a.cu": KERNEL}


def test_sdist_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_UNPACKED_BYTES", 10_000)
    data = sdist({"filler.bin": bytes(20_000), "a.cu": KERNEL})
    with pytest.raises(SourceUnavailable, match="10,000 bytes"):
        _read(tmp_path, data, "a.tar.gz")


def test_links_of_an_sdist_are_left_out(tmp_path: Path) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        link = tarfile.TarInfo("a.cu")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    assert _read(tmp_path, file.getvalue(), "a.tar.gz") == {}


def test_digest_depends_on_paths_and_content_but_not_on_order() -> None:
    members = [("b", b"2"), ("a", b"1")]
    assert members_digest(members) == members_digest(reversed(members))
    assert members_digest(members) != members_digest([("b", b"1"), ("a", b"2")])
