"""Calls of benchmark and profile that are about several files or choices."""

from pathlib import Path
from typing import Any

import pytest

from kopt.server.protocol.refusal import shown
from kopt.server.work.requests import BenchWork, NamedSource, TableWork, Work
from support.scripted_jobs import ScriptedJobs
from support.tool_client import KERNEL, connected, serve_options, text_of

pytestmark = pytest.mark.anyio

SOURCE = "/* kopt: 1 */"


async def called(
    arguments: dict[str, Any], folder: Path, tool: str = "benchmark"
) -> tuple[str, list[Work]]:
    """Return the text of the reply and the work that the call made."""
    for name in ("a.cu", "b.cu"):
        (folder / name).write_text(f"{SOURCE} // {name}", "utf-8")
    jobs = ScriptedJobs()
    options = serve_options(folder, workspaces=(folder.resolve(),))
    async with connected(options, jobs) as client:
        reply = await client.call_tool(tool, {"kernel": KERNEL, **arguments})
    return text_of(reply), jobs.works


async def test_several_files_become_one_job_with_their_texts(tmp_path: Path) -> None:
    arguments = {"paths": ["a.cu", "b.cu", "a.cu"], "tune": {"BLOCK": 128}, "arch": "H100"}
    _, works = await called(arguments, tmp_path, "profile")
    assert works == [
        TableWork(
            tool="profile",
            kernel=KERNEL,
            files=tuple(
                NamedSource(path=name, source=f"{SOURCE} // {name}") for name in ("a.cu", "b.cu")
            ),
            tune={"BLOCK": 128},
            every=False,
            arch="sm_90a",
        )
    ]


@pytest.mark.parametrize(
    ("tune", "held"), [("all", {}), ("all,BLOCK=128, ROWS=-2", {"BLOCK": 128, "ROWS": -2})]
)
async def test_all_stands_for_every_choice_with_the_values_beside_it(
    tune: str, held: dict[str, int], tmp_path: Path
) -> None:
    _, works = await called({"source": SOURCE, "tune": tune}, tmp_path)
    assert works == [
        TableWork(
            tool="benchmark",
            kernel=KERNEL,
            files=(NamedSource(path="", source=SOURCE),),
            tune=held,
            every=True,
        )
    ]


async def test_values_as_json_text_are_those_of_one_choice(tmp_path: Path) -> None:
    _, works = await called({"source": SOURCE, "tune": '{"BLOCK": 64}'}, tmp_path)
    assert works == [BenchWork(kernel=KERNEL, source=SOURCE, tune={"BLOCK": 64})]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"source": SOURCE, "tune": "every"}, "tune is 'every': expected is an object such as"),
        ({"source": SOURCE, "tune": "all,BLOCK"}, "tune is 'all,BLOCK': expected is"),
        ({"source": SOURCE, "tune": {"BLOCK": "x"}}, "tune.BLOCK is 'x': a whole number"),
        ({"source": SOURCE, "tune": 5}, "tune is 5: an object of names and values"),
        ({"paths": ["a.cu"], "path": "b.cu"}, "not both"),
        ({"paths": ["a.cu", "none.cu"]}, "there is no file 'none.cu'"),
        ({"paths": ["a.cu"] * 13}, "at most 12 of them are expected"),
        ({"tune": "all"}, "exactly one of source"),
    ],
)
async def test_mistake_is_one_line_and_no_job(
    arguments: dict[str, Any], said: str, tmp_path: Path
) -> None:
    text, works = await called(arguments, tmp_path)
    assert said in text, shown(text)
    assert "\n" not in text
    assert "constrained" not in text
    assert works == []
