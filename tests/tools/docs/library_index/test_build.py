"""Building the library index: what is read again, what is kept, what is said."""

import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.errors import SetupError, ToolError
from kopt.config.locks import file_lock
from kopt.config.settings import Settings
from kopt.tools.docs.build_records import BuildProgress, BuildResult
from kopt.tools.docs.indexing.index_meta import library_folder, library_index_path
from kopt.tools.docs.library_index.assembly import all_chunks
from kopt.tools.docs.query.search import read_document, search_documents
from kopt.tools.docs.records import SearchRequest
from kopt.tools.docs.words.glossary import WRITTEN_OVER
from support.fake_harvest import ALPHA, BETA, fake_harvest, kernel

pytestmark = pytest.mark.slow  # an index is built for each
KEPT = 8
FILES = 2 * KEPT
DEADLINE_S = 120
KILLED_BUILD = """
import sys
from pathlib import Path
from kopt.config.settings import Settings
from support.fake_harvest import fake_harvest

def on_progress(progress):
    if progress.step == "read" and progress.done == int(sys.argv[2]):
        print("half", flush=True)
        sys.stdin.readline()

if __name__ == "__main__":
    fake_harvest(alpha=int(sys.argv[3])).build(Settings(home=Path(sys.argv[1])), on_progress)
"""


def _symbols(settings: Settings, query: str) -> list[str | None]:
    return [hit.symbol for hit in search_documents(SearchRequest(query=query), settings).hits]


def test_a_function_is_found_with_source_version_and_licence(own_docs: Settings) -> None:
    fake_harvest().build(own_docs)
    hit = search_documents(SearchRequest(query="betaa_kernel"), own_docs).hits[0]
    assert (hit.source, hit.version, hit.license) == ("beta", "3.4", "BSD-3-Clause")
    assert (hit.path, hit.symbol, hit.kind) == ("src/beta0.cu", "betaa_kernel", "kernel")
    assert "__global__ void betaa_kernel" in hit.text
    assert hit.left_out_lines == 0


def test_the_result_says_what_is_in_the_index(own_docs: Settings) -> None:
    result = fake_harvest(alpha=2, beta=1).build(own_docs)
    counts = {source.source: (source.files, source.chunks) for source in result.sources}
    assert counts == {"alpha": (2, 2), "beta": (1, 1)}
    assert (result.chunks, result.files, result.reused_files) == (3, 3, 0)
    assert result.index_bytes == library_index_path(own_docs).stat().st_size
    assert set(result.seconds) == {"download", "read", "write"}
    assert BuildResult.model_validate_json(result.model_dump_json(by_alias=True)) == result


def test_what_did_not_change_is_not_read_again(own_docs: Settings) -> None:
    library = fake_harvest(alpha=3, beta=0)
    library.build(own_docs)
    written = library_index_path(own_docs).stat().st_mtime_ns
    again = library.build(own_docs)
    assert (again.is_new, again.reused_files) == (False, 3)
    assert library_index_path(own_docs).stat().st_mtime_ns == written

    library.files[ALPHA]["csrc/alpha0.cu"] = kernel("gamma", "counts narwhals")
    changed = library.build(own_docs)
    assert (changed.is_new, changed.reused_files) == (True, 2)
    assert _symbols(own_docs, "narwhals")[0] == "gamma_kernel"
    assert "alphaa_kernel" not in _symbols(own_docs, "alphaa_kernel")

    assert library.build(own_docs, fresh=True).reused_files == 0


def test_synopses_that_lost_their_code_are_named_in_every_build(own_docs: Settings) -> None:
    library = fake_harvest(alpha=0, beta=0)
    library.files = {
        replace(ALPHA, key=source): {"a.cu": kernel("activation")} for source in WRITTEN_OVER
    }
    built = library.build(own_docs)
    assert "MergeStateKernel" in built.synopses_without_code
    assert "activation_kernel" not in built.synopses_without_code
    again = library.build(own_docs)
    assert (again.is_new, again.synopses_without_code) == (False, built.synopses_without_code)


def test_a_source_that_cannot_be_had_stays_as_it_was(own_docs: Settings) -> None:
    library = fake_harvest()
    library.missing["beta"] = "no network"
    first = library.build(own_docs)
    assert [(one.source, one.reason) for one in first.skipped] == [("beta", "no network")]
    assert [source.source for source in first.sources] == ["alpha"]

    library.missing.clear()
    library.build(own_docs)
    library.missing["beta"] = "no network"
    library.files[ALPHA]["csrc/new.cu"] = kernel("delta")
    kept = library.build(own_docs)
    assert {source.source: source.kept for source in kept.sources} == {"alpha": False, "beta": True}
    assert _symbols(own_docs, "betaa_kernel")[0] == "betaa_kernel"


def test_without_any_source_the_index_stays_and_the_reasons_are_said(own_docs: Settings) -> None:
    library = fake_harvest()
    library.missing = {"alpha": "no network", "beta": "no disk"}
    with pytest.raises(SetupError, match="alpha: no network; beta: no disk"):
        library.build(own_docs)
    assert not library_index_path(own_docs).exists()


def test_progress_ends_each_step_with_everything_done(own_docs: Settings) -> None:
    told: list[BuildProgress] = []
    fake_harvest(alpha=2, beta=0).build(own_docs, told.append)
    assert told[0].step == "download"
    read = [progress for progress in told if (progress.step, progress.source) == ("read", "alpha")]
    assert [(progress.done, progress.total) for progress in read] == [(0, 2), (1, 2), (2, 2)]
    assert (told[-1].step, told[-1].done, told[-1].total) == ("write", 2, 2)


def test_a_killed_build_goes_on_where_it_was(own_docs: Settings) -> None:
    words = [sys.executable, "-P", "-c", KILLED_BUILD]
    facts = [str(own_docs.home), str(KEPT + 1), str(FILES)]
    child = subprocess.Popen(
        [*words, *facts],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "half\n"
    child.kill()
    child.communicate(timeout=DEADLINE_S)  # ends when its workers have, which hold the pipe
    assert not library_index_path(own_docs).exists()
    half_written = library_folder(own_docs) / ".new-killed.sqlite"
    half_written.touch()
    result = fake_harvest(alpha=FILES).build(own_docs)
    assert not half_written.exists()
    assert KEPT <= result.reused_files < FILES
    assert result.chunks == FILES + 1


def test_the_second_of_two_builds_waits_and_finds_it_done(own_docs: Settings) -> None:
    library = fake_harvest(alpha=1, beta=0)
    library.build(own_docs)
    waits = threading.Event()
    results: list[BuildResult] = []

    def on_progress(progress: BuildProgress) -> None:
        if progress.step == "wait":
            waits.set()

    with file_lock(library_folder(own_docs) / "lock"):
        second = threading.Thread(
            target=lambda: results.append(library.build(own_docs, on_progress))
        )
        second.start()
        assert waits.wait(DEADLINE_S)
        assert not results
    second.join(DEADLINE_S)
    assert [result.is_new for result in results] == [False]


def test_a_document_is_read_whole_by_its_uid_and_all_from_end_to_end(own_docs: Settings) -> None:
    fake_harvest(alpha=2, beta=1).build(own_docs)
    chunks = list(all_chunks(own_docs))
    assert [chunk.source for chunk in chunks] == ["alpha", "alpha", "beta"]
    assert [read_document(chunk.uid, own_docs).document for chunk in chunks] == chunks
    with pytest.raises(ToolError, match="nothing"):
        read_document("alpha:nothing.cu#1", own_docs)


def test_the_same_code_in_two_libraries_is_one_hit_with_both_places(own_docs: Settings) -> None:
    library = fake_harvest(alpha=1, beta=0)
    library.files[BETA] = {"copy.cu": library.files[ALPHA]["csrc/alpha0.cu"]}
    library.build(own_docs)
    (hit,) = search_documents(SearchRequest(query="alphaa", source="alpha,beta"), own_docs).hits
    assert hit.source == "alpha"
    assert [place.rpartition(":")[0] for place in hit.also_at] == ["beta:copy.cu"]
