"""The key that names an index of kopt's own documents: which code and data it stands for."""

from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.tools.docs import code_version
from kopt.tools.docs.code_version import code_files
from kopt.tools.docs.own.corpus import INDEX_CODE, current_corpus


def test_data_that_make_an_index_are_in_its_key_as_code_is() -> None:
    names = {path.name for path in code_files(*INDEX_CODE)}
    assert {"weights.py", "glossary.yaml", "tags.yaml", "lexicon.yaml", "asks.yaml"} <= names
    assert {"vllm.yaml", "own_chunks.py", "postings.py", "units.py"} <= names


def test_process_that_outlives_an_upgrade_keeps_the_key_of_the_code_it_runs(
    own_docs: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = current_corpus(own_docs).key
    upgraded = tmp_path / "weights.py"
    upgraded.write_text("upgraded = True\n")

    def of_the_upgrade(*_patterns: str) -> list[Path]:
        return [upgraded]

    monkeypatch.setattr(code_version, "code_files", of_the_upgrade)
    assert current_corpus(own_docs).key == before
