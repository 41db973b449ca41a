"""Pages in a real Chromium: `kopt view`, a report, the view of beam_step in a client's frame."""

import os
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from mcp import MCPError
from playwright.sync_api import Browser, Page, expect, sync_playwright

from kopt.config.settings import Settings
from kopt.search.reports.contents import read_contents
from kopt.search.reports.page import render_page
from kopt.server.protocol.run_view import RUN_VIEW
from kopt.server.work.requests import StepWork
from support.scripted_jobs import ScriptedJobs
from support.told_run import told_run
from support.tool_client import connected, serve_options

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# CI installs one (.ci/run); a developer's machine need not have it.
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium; on Debian and Ubuntu: apt install chromium"
)
T = TypeVar("T")
HOSTILE = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"
PHONE, DESK = 390, 1300
HOST = """
<iframe id="view" sandbox="allow-scripts" style="width: 100%; height: 700px"></iframe>
<script>
  const heard = [];
  const frame = document.getElementById("view");
  const send = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
  addEventListener("message", async ({ data, source }) => {
    if (source !== frame.contentWindow) return;
    heard.push(data.method ?? "answer");
    if (data.method === "ui/initialize") {
      const hostInfo = { name: "host", version: "1" };
      const hostContext = { theme: "dark" };
      const result = { protocolVersion: "2026-01-26", hostInfo, hostCapabilities: {}, hostContext };
      send({ id: data.id, result });
    } else if (data.method === "resources/read") {
      send({ id: data.id, ...(await window.readResource(data.params.uri)) });
    }
  });
</script>
"""
"""A client that shows views, as far as the specification asks: it hands on what the frame reads."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return a headless Chromium, without the sandbox that root cannot have."""
    expect.set_options(timeout=30_000)  # a busy machine; what is there is seen at once
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield chromium
        chromium.close()


@contextmanager
def _page(browser: Browser, width: int = DESK) -> Generator[Page]:
    """Yield a page of this width; nothing may have gone wrong in it at the end."""
    page = browser.new_page(viewport={"width": width, "height": 800})
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda said: troubles.append(said.text) if said.type == "error" else None)
    yield page
    page.close()
    assert troubles == []


@contextmanager
def _view(home: Path) -> Generator[str]:
    """Run `kopt view`; yield the address that it printed."""
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "kopt", "view", "--port", "0"],
        cwd=home,
        env={**os.environ, "KOPT_HOME": str(home)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def _overflow(page: Page) -> int:
    """Return by how many pixels the page is wider than the window."""
    wide: int = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return wide


def test_page_follows_a_run_that_another_process_drives_and_keeps_what_was_unfolded(
    tmp_path: Path, browser: Browser
) -> None:
    with told_run(tmp_path) as store, _view(tmp_path) as address, _page(browser) as page:
        page.goto(address)
        page.get_by_role("link", name="run-1").click()
        expect(page.locator("#connection")).to_have_text("live")
        expect(page.locator("#outcome .verdict")).to_contain_text("passed the full check")
        page.locator("#code-3 > summary").click()
        expect(page.locator("#code-3 ins")).to_have_text(["+// r1/b1 1"])
        store.resume(store.reader.state().settings)
        expect(page.locator("#outcome .verdict")).to_contain_text("running")
        expect(page.locator("#code-3 ins")).to_be_visible()


def test_two_ticked_runs_stand_side_by_side(tmp_path: Path, browser: Browser) -> None:
    told_run(tmp_path).close()
    told_run(tmp_path, run_id="run-2").close()
    with _view(tmp_path) as address, _page(browser) as page:
        page.goto(address)
        for box in page.get_by_role("checkbox").all():
            box.check()
        page.get_by_role("button", name="side by side").click()
        expect(page.locator(".sides h2")).to_have_count(2)
        expect(page.locator("#connection")).to_have_text("live")


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_no_page_is_wider_than_its_window(tmp_path: Path, browser: Browser, width: int) -> None:
    with told_run(tmp_path) as store:
        report = tmp_path / "report.html"
        contents = read_contents(store.reader, store.folder, Settings(tmp_path))
        report.write_text(render_page(contents), "utf-8")
    with _view(tmp_path) as address, _page(browser, width) as page:
        for place in (address, f"{address}runs/run-1", report.as_uri()):
            page.goto(place)
            for details in page.locator(".more > td > details > summary").all():
                details.click()
            assert _overflow(page) <= 0, place


def test_table_of_candidates_is_short_enough_to_read(tmp_path: Path, browser: Browser) -> None:
    with told_run(tmp_path) as store:
        contents = read_contents(store.reader, store.folder, Settings(tmp_path))
        (tmp_path / "report.html").write_text(render_page(contents), "utf-8")
    with _page(browser) as page:
        page.goto((tmp_path / "report.html").as_uri())
        boxes = [row.bounding_box() for row in page.locator(".candidates tbody").all()]
        assert len(boxes) == 5 and all(box and box["height"] < 90 for box in boxes)


def test_nothing_of_a_hostile_note_runs(tmp_path: Path, browser: Browser) -> None:
    told_run(tmp_path, HOSTILE).close()
    with _view(tmp_path) as address, _page(browser) as page:
        page.goto(f"{address}runs/run-1")
        expect(page.locator("#connection")).to_have_text("live")
        page.locator("#code-2 > summary").click()
        expect(page.locator("#code-2 h3").first).to_be_visible()
        assert page.title() == "run-1" and page.locator("main img, main script").count() == 0


@contextmanager
def _client_with_view(
    browser: Browser, home: Path, jobs: ScriptedJobs | None = None
) -> Generator[Page]:
    """Yield a page that shows the view of beam_step and reads from a server over `home`."""
    read = partial(_apart, _read, home, jobs or ScriptedJobs())
    with _page(browser) as page:
        page.expose_function("readResource", read)  # pyright: ignore[reportUnknownMemberType]
        page.set_content(HOST)
        document = read(RUN_VIEW)["result"]["contents"][0]["text"]
        page.evaluate("document => frame.srcdoc = document", document)
        page.wait_for_function("heard.includes('ui/notifications/initialized')")
        yield page


def _apart(call: Callable[..., Awaitable[T]], *arguments: object) -> T:
    """Return what `call` returns in a loop of its own: Playwright has the one of this thread."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(anyio.run, call, *arguments).result()


async def _read(home: Path, jobs: ScriptedJobs, address: str) -> dict[str, Any]:
    """Return what a client hands on of the answer."""
    async with connected(serve_options(home), jobs) as client:
        try:
            result = await client.read_resource(address)
        except MCPError as error:
            return {"error": {"code": error.code, "message": error.message}}
    return {"result": result.model_dump(mode="json", by_alias=True)}


def _tell(page: Page, method: str, params: dict[str, object]) -> None:
    page.evaluate("message => send(message)", {"method": method, "params": params})


def test_view_of_beam_step_shows_its_run_and_the_code_that_is_unfolded(
    tmp_path: Path, browser: Browser
) -> None:
    told_run(tmp_path, HOSTILE).close()
    with _client_with_view(browser, tmp_path) as page:
        view = page.frame_locator("#view")
        _tell(page, "ui/notifications/tool-input", {"arguments": {"kernel": "made_up_b8"}})
        reply = {"status": "paused", "run_id": "run-1"}
        _tell(page, "ui/notifications/tool-result", {"structuredContent": reply})
        expect(view.locator("#outcome .verdict")).to_contain_text("passed the full check")
        expect(view.locator("#connection")).to_have_text("run-1: as it stands")
        view.locator("#code-3 > summary").click()
        expect(view.locator("#code-3 ins").first).to_be_visible()
        page.wait_for_function("heard.includes('ui/notifications/size-changed')")
        assert view.locator("img, main script").count() == 0
        page.evaluate("send({ id: 7, method: 'ui/resource-teardown', params: {} })")
        page.wait_for_function("heard.includes('answer')")


def test_view_of_a_step_that_runs_follows_it(tmp_path: Path, browser: Browser) -> None:
    with told_run(tmp_path) as store, _client_with_view(browser, tmp_path) as page:
        view = page.frame_locator("#view")
        _tell(page, "ui/notifications/tool-input", {"arguments": {"run_id": "run-1"}})
        expect(view.locator("#connection")).to_have_text("run-1: live")
        store.resume(store.reader.state().settings)
        expect(view.locator("#outcome .verdict")).to_contain_text("running")


@pytest.mark.parametrize("ending", ["cancelled", "done"])
def test_view_of_a_job_shows_its_run_while_it_goes_on_and_stops_with_it(
    ending: str, tmp_path: Path, browser: Browser
) -> None:
    told_run(tmp_path).close()
    jobs = ScriptedJobs()
    jobs.go.clear()
    job_id = _apart(jobs.submit, StepWork(run_id="run-1"), "me")
    with _client_with_view(browser, tmp_path, jobs) as page:
        view = page.frame_locator("#view")
        reply = {"status": "running", "job_id": job_id, "run_id": "run-1"}
        _tell(page, "ui/notifications/tool-result", {"structuredContent": reply})
        expect(view.locator("#outcome .verdict")).to_contain_text("passed the full check")
        expect(view.locator("#connection")).to_have_text("run-1: live")
        if ending == "done":
            jobs.go.set()
        else:
            jobs.cancelled.add(job_id)
        expect(view.locator("#connection")).to_have_text("run-1: as it stands")


def test_view_of_a_call_without_a_run_says_so(tmp_path: Path, browser: Browser) -> None:
    with _client_with_view(browser, tmp_path) as page:
        _tell(page, "ui/notifications/tool-result", {"isError": True, "content": []})
        expect(page.frame_locator("#view").locator("#connection")).to_have_text(
            "this call began no run"
        )
