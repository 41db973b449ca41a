"""`kopt docs build` of folders and repositories of this disk, where no network is to be had."""

from collections.abc import Generator
from pathlib import Path

import pytest

from kopt.server.exits import ExitCode
from kopt.tools.docs.library import harvest, packages
from kopt.tools.docs.library.pins import Pins, default_keys
from kopt.tools.docs.library_index import choices
from support.archives import pin_of, wheel
from support.built_docs import copy_docs
from support.command_line import Kopt
from support.git_repository import commit_files
from support.package_server import package_server

pytestmark = pytest.mark.slow  # an index is built for each
KERNEL = b"""// Walks like a %s over its rows.
__global__ void %s_walk(float* x, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) x[row] *= 2.0f;
}
"""


def folder_of(path: Path, animal: str) -> Path:
    """Return a folder with one kernel about `animal`."""
    path.mkdir(parents=True)
    (path / f"{animal}.cu").write_bytes(KERNEL % ((animal.encode(),) * 2))
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kopt: Kopt, built_docs: Path) -> Path:
    """Return a home of this test, where no library is built by default and no network is there."""
    home = copy_docs(built_docs, tmp_path / "home")
    monkeypatch.setenv("KOPT_HOME", str(home))
    monkeypatch.setenv("KOPT_JOBS", "1")
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    monkeypatch.setattr(choices, "default_keys", lambda: ())
    return home


@pytest.fixture
def walrus(home: Path, tmp_path: Path) -> Path:
    """Return a folder of the user."""
    return folder_of(tmp_path / "of walruses", "walrus")


@pytest.fixture
def tiny_liger(home: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Serve a Liger of one kernel."""
    content = wheel({"pkg/kernel.cu": KERNEL % (b"liger", b"liger")})
    pin = pin_of(content)
    pinned = Pins(libraries={}, packages={"liger": pin}, installed={}, repositories={})
    for module in (harvest, packages):
        monkeypatch.setattr(module, "pins", lambda: pinned)
    with package_server() as server:
        server.files[pin.filename] = content
        monkeypatch.setenv("PIP_INDEX_URL", server.index)
        yield


def sources(kopt: Kopt) -> dict[str, dict[str, object]]:
    """Return the sources in the library index, by name."""
    listed = kopt("docs", "sources", "--json").document["sources"]
    own = ("headers", "problems", "winners", "docs", "notes", "intrinsics", "gpus")
    return {one["source"]: one for one in listed if one["is_built"] and one["source"] not in own}


def test_folder_is_built_with_its_weight_and_found(kopt: Kopt, walrus: Path) -> None:
    built = kopt("docs", "build", "--folder", f"mine={walrus}:0.7")
    assert built.code == ExitCode.PASSED
    assert "1 document of 1 source" in built.stdout
    assert sources(kopt)["mine"]["quality"] == 0.7
    hit = kopt("docs", "search", "--symbol", "walrus_walk", "--json").document["hits"][0]
    assert (hit["source"], hit["path"], hit["license"]) == ("mine", "walrus.cu", None)


def test_progress_is_lines_on_stderr_without_a_terminal(kopt: Kopt, walrus: Path) -> None:
    ending = kopt("docs", "build", "--folder", f"mine={walrus}")
    assert ending.stderr.splitlines() == [
        "mine: reading, 1 file",
        "writing the index, 1 document",
    ]


def test_json_is_one_document_and_nothing_else(kopt: Kopt, walrus: Path) -> None:
    ending = kopt("docs", "build", "--folder", f"mine={walrus}", "--json")
    assert (ending.document["schema"], ending.stderr) == ("kopt.docs-build/1", "")
    (source,) = ending.document["sources"]
    assert (source["source"], source["files"], source["chunks"]) == ("mine", 1, 1)


def test_choices_stay_in_later_builds(kopt: Kopt, walrus: Path, tmp_path: Path) -> None:
    kopt("docs", "build", "--folder", f"mine={walrus}:0.7")
    other = folder_of(tmp_path / "other", "ocelot")
    repository = tmp_path / "Badgers"
    commit = commit_files(repository, {"badger.cu": KERNEL % (b"badger", b"badger")})
    ending = kopt("docs", "build", "--folder", f"other={other}", "--git", repository, "--json")
    assert ending.code == ExitCode.PASSED
    assert {"mine", "other", "badgers"} == sources(kopt).keys()
    assert kopt("docs", "build", "--json").document["is_new"] is False
    found = sources(kopt)
    assert {"mine", "other", "badgers"} == found.keys()
    assert found["mine"]["quality"] == 0.7
    assert found["badgers"]["version"] == commit[:12]


def test_forgotten_source_is_gone_and_stays_away(kopt: Kopt, walrus: Path, tmp_path: Path) -> None:
    other = folder_of(tmp_path / "other", "ocelot")
    kopt("docs", "build", "--folder", f"mine={walrus}", "--folder", f"other={other}")
    assert kopt("docs", "sources", "--forget", "mine").code == ExitCode.PASSED
    assert sources(kopt).keys() == {"other"}
    hits = kopt("docs", "search", "walrus_walk", "--json").document["hits"]
    assert "mine" not in {hit["source"] for hit in hits}
    kopt("docs", "build", "--fresh")
    assert sources(kopt).keys() == {"other"}


@pytest.mark.usefixtures("tiny_liger")
def test_library_that_was_forgotten_comes_back_only_by_name(
    kopt: Kopt, walrus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choices, "default_keys", lambda: ("liger",))
    kopt("docs", "build", "--folder", f"mine={walrus}", "--source", "liger")
    kopt("docs", "sources", "--forget", "liger")
    kopt("docs", "build")
    assert sources(kopt).keys() == {"mine"}
    kopt("docs", "build", "--source", "liger")
    assert sources(kopt).keys() == {"mine", "liger"}
    assert kopt("docs", "build", "--json").document["is_new"] is False


@pytest.mark.usefixtures("tiny_liger")
def test_first_build_with_a_folder_has_the_default_libraries_too(
    kopt: Kopt, walrus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choices, "default_keys", lambda: ("liger",))
    kopt("docs", "build", "--folder", f"mine={walrus}")
    assert sources(kopt).keys() == {"mine", "liger"}


@pytest.mark.usefixtures("tiny_liger")
def test_folder_is_added_alone_to_an_index_of_folders(
    kopt: Kopt, walrus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kopt("docs", "build", "--folder", f"mine={walrus}")
    monkeypatch.setattr(choices, "default_keys", lambda: ("liger",))
    other = folder_of(tmp_path / "other", "ocelot")
    kopt("docs", "build", "--folder", f"other={other}")
    assert sources(kopt).keys() == {"mine", "other"}


@pytest.mark.usefixtures("home")
def test_where_all_libraries_are_forgotten_a_folder_is_built_alone(
    kopt: Kopt, walrus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choices, "default_keys", default_keys)
    for key in default_keys():
        assert kopt("docs", "sources", "--forget", key).code == ExitCode.PASSED
    ending = kopt("docs", "build")
    assert ending.code == ExitCode.USAGE
    assert "every default library was forgotten" in ending.stderr
    document = kopt("docs", "build", "--folder", f"mine={walrus}", "--json").document
    assert document["skipped"] == []
    assert sources(kopt).keys() == {"mine"}


def test_last_source_that_is_forgotten_leaves_no_index(kopt: Kopt, walrus: Path) -> None:
    kopt("docs", "build", "--folder", f"mine={walrus}")
    kopt("docs", "sources", "--forget", "mine")
    assert sources(kopt) == {}
    assert kopt("docs", "search", "walrus").code == ExitCode.PASSED


def test_forgetting_what_is_not_there_names_what_is(kopt: Kopt, walrus: Path) -> None:
    assert "it is not built" in kopt("docs", "sources", "--forget", "mine").stderr
    kopt("docs", "build", "--folder", f"mine={walrus}")
    ending = kopt("docs", "sources", "--forget", "walrus")
    assert ending.code == ExitCode.USAGE
    assert "it has mine" in ending.stderr


def test_library_can_be_forgotten_before_it_is_built(
    kopt: Kopt, walrus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choices, "default_keys", lambda: ("liger",))
    assert kopt("docs", "sources", "--forget", "liger").code == ExitCode.PASSED
    document = kopt("docs", "build", "--folder", f"mine={walrus}", "--json").document
    assert document["skipped"] == []


def test_library_that_is_named_and_cannot_be_had_ends_with_1(kopt: Kopt, walrus: Path) -> None:
    ending = kopt("docs", "build", "--source", "liger", "--folder", f"mine={walrus}")
    assert ending.code == ExitCode.FELL_SHORT
    assert "skipped: cannot reach" in ending.stdout
    assert sources(kopt).keys() == {"mine"}


def test_build_of_all_without_some_ends_with_1_and_names_them(
    kopt: Kopt, walrus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kopt("docs", "build", "--folder", f"mine={walrus}")
    monkeypatch.setattr(choices, "default_keys", lambda: ("liger", "vllm"))
    ending = kopt("docs", "build")
    assert (ending.code, "not had this time: liger, vllm;" in ending.stderr) == (1, True)
    assert kopt("docs", "build", "--installed").code == ExitCode.PASSED


def test_nothing_to_be_had_ends_with_3_and_builds_nothing(kopt: Kopt, home: Path) -> None:
    ending = kopt("docs", "build", "--source", "liger", "--json")
    assert ending.code == ExitCode.MACHINE
    assert "liger: cannot reach" in ending.document["message"]
    assert sources(kopt) == {}


def test_source_that_failed_is_not_remembered(kopt: Kopt, walrus: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()  # a folder without a kernel is no source
    kopt("docs", "build", "--folder", f"gone={gone}", "--folder", f"mine={walrus}")
    assert kopt("docs", "build", "--json").document["skipped"] == []


def test_folder_that_went_away_keeps_what_was_read(
    kopt: Kopt, walrus: Path, tmp_path: Path
) -> None:
    kopt("docs", "build", "--folder", f"mine={walrus}")
    walrus.rename(tmp_path / "moved")
    ending = kopt("docs", "build")
    assert ending.code == ExitCode.PASSED
    assert "as it was before" in ending.stdout
    assert sources(kopt).keys() == {"mine"}


def test_damaged_choices_are_one_line_that_says_what_to_do(
    kopt: Kopt, walrus: Path, home: Path
) -> None:
    kopt("docs", "build", "--folder", f"mine={walrus}")
    (file,) = home.glob("cache/docs/library/choices/choices.json")
    file.write_text("{")
    ending = kopt("docs", "build")
    assert ending.code == ExitCode.MACHINE
    assert f"{file} cannot be read: delete it" in ending.stderr


def test_ctrl_c_says_that_the_same_command_goes_on(
    kopt: Kopt, walrus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    kopt("docs", "build", "--folder", f"mine={walrus}")
    with monkeypatch.context() as patch:
        patch.setattr(choices, "build_library", interrupted)
        ending = kopt("docs", "build", "--folder", f"other={walrus}")
    assert ending.code == ExitCode.INTERRUPTED
    assert "the same command goes on where it was" in ending.stderr
    assert sources(kopt).keys() == {"mine"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--source", "walrus"), "no source 'walrus'; there are flashinfer"),
        (("--folder", "mine"), "NAME=PATH"),
        (("--folder", "=x"), "NAME=PATH"),
        (("--folder", "mine=no/such"), "is not there"),
        (("--folder", f"mine={__file__}"), "a file, not a folder"),
        (("--folder", f"mine={Path(__file__).parent}:1.5"), "0 < weight <= 1"),
        (("--folder", f"mine={Path(__file__).parent}:0"), "0 < weight <= 1"),
        (("--folder", f"mine={Path(__file__).parent}:-1"), "0 < weight <= 1"),
        (("--folder", f"My Own={Path(__file__).parent}"), "cannot name a source"),
        (("--folder", f"flashinfer={Path(__file__).parent}"), "is a source already"),
        (("--folder", f"notes={Path(__file__).parent}"), "is a source already"),
        (("--folder", f"a={Path(__file__).parent}", "--folder", f"a={Path.cwd()}"), "twice"),
        (("--git", "no/such/repository"), "is no repository to index"),
        (("--git", "ext::sh -c true"), "is no repository to index"),
        (("walrus",), "unexpected extra argument"),
    ],
)
def test_careless_call_is_one_line_that_says_what_is_allowed(
    kopt: Kopt, home: Path, words: tuple[str, ...], said: str
) -> None:
    ending = kopt("docs", "build", *words)
    assert ending.code == ExitCode.USAGE
    assert said in ending.stderr
    assert "Traceback" not in ending.stderr


def test_home_that_is_a_file_names_the_variable(
    kopt: Kopt, walrus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KOPT_HOME", str(tmp_path / "file" / "home"))
    ending = kopt("docs", "build", "--folder", f"mine={walrus}")
    assert ending.code == ExitCode.MACHINE
    assert "KOPT_HOME" in ending.stderr
