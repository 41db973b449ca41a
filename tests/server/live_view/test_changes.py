"""The server-sent events of a live view: the whole page first, then what has changed."""

import json
import shutil
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.search.reports.run_page import PARTS
from kopt.search.store.store import RunStore
from kopt.server.live_view.changes import ChangeFeed
from kopt.server.live_view.run_pages import RunPages
from kopt.server.live_view.views import LiveView
from support.told_run import told_run

pytestmark = pytest.mark.anyio


class _Looks:
    """Takes the place of time between two looks: counts them, and does what a test asks for."""

    def __init__(self, store: RunStore | None = None, at: int = 0) -> None:
        self.count = 0
        self._store, self._at = store, at

    async def pause(self, _: float) -> None:
        self.count += 1
        if self._store is not None and self.count == self._at:
            self._store.resume(self._store.reader.state().settings)


def _view(home: Path, *runs: str) -> LiveView:
    return LiveView(RunPages(Settings(home)), "/secret/", runs)


def _parts(event: str) -> dict[str, str]:
    name, data, *rest = event.split("\n")
    assert name == "event: parts" and rest == ["", ""]
    parts: dict[str, str] = json.loads(data.removeprefix("data: "))
    return parts


async def test_first_event_is_the_whole_page_and_the_next_what_differs(tmp_path: Path) -> None:
    with told_run(tmp_path) as store:
        looks = _Looks(store, at=3)
        texts = ChangeFeed(_view(tmp_path, "run-1"), looks.pause).texts()
        first, second = _parts(await anext(texts)), _parts(await anext(texts))
        await texts.aclose()
    assert set(first) == {*PARTS, "events"}
    assert looks.count == 3
    assert {"outcome", "events", "next"} <= set(second) and not {"rounds", "cost"} & set(second)
    assert "running: no candidate" in second["outcome"] and "kopt view run-1" in second["next"]


async def test_view_of_a_run_that_stands_still_sends_signs_of_life(tmp_path: Path) -> None:
    told_run(tmp_path).close()
    looks = _Looks()
    texts = ChangeFeed(_view(tmp_path, "run-1"), looks.pause).texts()
    await anext(texts)
    assert await anext(texts) == ": still there\n\n" and looks.count == 10
    await texts.aclose()


async def test_list_tells_of_a_run_that_begins(tmp_path: Path) -> None:
    looks = _Looks()
    texts = ChangeFeed(_view(tmp_path), looks.pause).texts()
    assert "No runs yet" in _parts(await anext(texts))["runs"]
    told_run(tmp_path).close()
    assert "/secret/runs/run-1" in _parts(await anext(texts))["runs"]
    await texts.aclose()


async def test_run_whose_folder_is_moved_away_says_so_on_its_page(tmp_path: Path) -> None:
    told_run(tmp_path).close()
    texts = ChangeFeed(_view(tmp_path, "run-1"), _Looks().pause).texts()
    await anext(texts)
    shutil.move(tmp_path / "runs" / "run-1", tmp_path / "elsewhere")
    after = _parts(await anext(texts))
    assert "no run matches" in after["outcome"] and after["candidates"] == ""
    await texts.aclose()
