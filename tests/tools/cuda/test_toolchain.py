"""Discovery of the compiler, with scripts that answer as nvcc does."""

from pathlib import Path

import pytest

from kopt.config.errors import SetupError
from kopt.config.settings import Settings
from kopt.tools.cuda import toolchain as discovery
from kopt.tools.cuda.toolchain import FoundToolchain, find_toolchain
from support.cuda_sources import as_script


def fake_nvcc(root: Path, version: str = "13.0.88") -> Path:
    """A toolkit folder whose nvcc answers --version and --dryrun."""
    return as_script(
        root / "bin" / "nvcc",
        f"""case "$1" in
  --version) echo "Cuda compilation tools, release 13.0, V{version}" ;;
  --dryrun) echo '#$ _HERE_={root}/bin' >&2 ;;
esac""",
    )


@pytest.fixture
def without_pip_toolkit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "pip_toolkit_root", lambda: None)


def test_the_setting_wins_over_the_pip_toolkit(tmp_path: Path) -> None:
    nvcc = fake_nvcc(tmp_path / "mine")
    found = find_toolchain(Settings(home=tmp_path, nvcc=nvcc))
    assert (found.origin, found.nvcc, found.version) == ("setting", nvcc, "13.0.88")


def test_a_setting_that_names_no_file_is_not_replaced_by_another_compiler(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"KOPT_NVCC is .*absent"):
        find_toolchain(Settings(home=tmp_path, nvcc=tmp_path / "absent"))


def test_the_pip_toolkit_wins_over_cuda_home(tmp_path: Path) -> None:
    fake_nvcc(tmp_path / "system")
    found = find_toolchain(Settings(home=tmp_path, cuda_home=tmp_path / "system"))
    assert found.origin == "pip"
    assert found.nvdisasm is not None
    assert found.nvrtc is not None


@pytest.mark.usefixtures("without_pip_toolkit")
def test_cuda_home_wins_over_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home_nvcc = fake_nvcc(tmp_path / "system")
    fake_nvcc(tmp_path / "other")
    monkeypatch.setenv("PATH", f"{tmp_path / 'other' / 'bin'}:/usr/bin:/bin")
    found = find_toolchain(Settings(home=tmp_path, cuda_home=tmp_path / "system"))
    assert (found.origin, found.nvcc) == ("cuda_home", home_nvcc)


@pytest.mark.usefixtures("without_pip_toolkit")
def test_a_script_on_path_leads_to_the_toolkit_that_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fake_nvcc(tmp_path / "cuda-13.0")
    as_script(tmp_path / "bin" / "nvcc", f'exec {real} "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    found = find_toolchain(Settings(home=tmp_path))
    assert (found.origin, found.root) == ("path", tmp_path / "cuda-13.0")


@pytest.mark.usefixtures("without_pip_toolkit")
def test_no_compiler_at_all_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match=r"kopt-mcp\[toolkit\]"):
        find_toolchain(Settings(home=tmp_path))


def test_a_missing_host_compiler_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"'no-such-g\+\+'.*KOPT_CXX"):
        find_toolchain(Settings(home=tmp_path, gxx="no-such-g++"))


def test_an_older_nvdisasm_of_another_toolkit_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvcc = fake_nvcc(tmp_path / "new", "13.2.86")
    as_script(tmp_path / "old" / "bin" / "nvdisasm", 'echo "release 13.0, V13.0.88"')
    monkeypatch.setattr(discovery, "pip_toolkit_root", lambda: tmp_path / "old")
    assert found_with(nvcc, tmp_path).nvdisasm is None


def test_a_newer_nvdisasm_reads_the_cubins_of_an_older_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvcc = fake_nvcc(tmp_path / "system", "13.0.88")
    newer = as_script(tmp_path / "pip" / "bin" / "nvdisasm", 'echo "release 13.2, V13.2.86"')
    monkeypatch.setattr(discovery, "pip_toolkit_root", lambda: tmp_path / "pip")
    assert found_with(nvcc, tmp_path).nvdisasm == newer


def found_with(nvcc: Path, home: Path) -> FoundToolchain:
    return find_toolchain(Settings(home=home, nvcc=nvcc))


def test_the_record_names_compiler_version_and_origin(toolchain: FoundToolchain) -> None:
    record = toolchain.record("nvcc")
    assert record.version.startswith("13.")
    assert (record.compiler, record.path) == ("nvcc", str(toolchain.nvcc))
    assert toolchain.record("nvrtc").path.endswith("libnvrtc.so.13")
