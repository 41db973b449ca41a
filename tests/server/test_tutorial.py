"""docs/tutorial.md, done as a reader does it: files saved, commands run in order, output compared.

Slow: it compiles and searches, two minutes on two cores.
"""

import re
from pathlib import Path

import pytest

from kopt.search.models.model_source import PLAYED_KEY
from support.fake_messages import FakeMessages
from support.played.good import good_model
from support.played.metered import Metered
from support.shared_caches import share_caches
from support.tutorial import ON_GPU, PAGE, WITH_KEY, WITH_TORCH, Reader, files_of, parts, steps_of


@pytest.fixture
def reader(tmp_path: Path, shared_caches: Path) -> Reader:
    """Return a reader who has just installed kopt."""
    (tmp_path / "work").mkdir()
    return Reader(tmp_path / "work", share_caches(tmp_path / "home", shared_caches))


@pytest.mark.slow  # compiles, simulates and searches
def test_the_page_is_true_on_the_simulator_from_its_first_command_to_its_last(
    reader: Reader,
) -> None:
    with FakeMessages(Metered(good_model)) as fake:
        key = {"ANTHROPIC_API_KEY": PLAYED_KEY, "ANTHROPIC_BASE_URL": fake.url}
        for part in parts():
            reader.save(files_of(part))
            for step in steps_of(part):
                if step.where not in (ON_GPU, WITH_TORCH):
                    reader.do(step, **(key if step.where == WITH_KEY else {}))


@pytest.mark.gpu
def test_the_last_part_is_true_on_a_gpu(reader: Reader, tmp_path: Path) -> None:
    """The export's own test needs torch, and ninja and nvcc for torch's extension builder."""
    for step in steps_of(parts()[-1]):
        reader.do(step, TORCH_EXTENSIONS_DIR=str(tmp_path / "extensions"))


def test_the_page_says_of_every_command_where_it_runs() -> None:
    steps = list(steps_of(PAGE))
    assert len(parts()) == 4
    assert {step.where for step in steps} == {"", WITH_KEY, WITH_TORCH, ON_GPU}
    assert {step.where for step in steps if "cuda:" in step.command} == {ON_GPU}
    anywhere = [step.command for step in steps if step.where in ("", WITH_TORCH)]
    assert all(
        "--device sim" in command
        for command in anywhere
        if re.match(r"kopt (check|run|bench)\b", command)
    )


def test_the_measured_numbers_are_those_of_the_results() -> None:
    results = (Path(__file__).parents[2] / "docs" / "results.md").read_text("utf-8")
    rows = re.findall(r"^\| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+x) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 2  # of the winner's three workloads, one has another winner
    for count, baseline, own, speedup in rows:
        name = f"silu_and_mul_b{count.replace(',', '')}xh14336"
        found = rf"^\| `{name}` .*\| {baseline} \| {own} \| {speedup} \|"
        assert re.search(found, results, re.MULTILINE), name
    assert "1.407 us, FlashInfer's 4.940 us: 3.513x, with a 95 % interval of 3.507 to 3.522" in PAGE
    assert "| 4.940 | 1.407 | 3.513x | 3.507 to 3.522 |" in results
