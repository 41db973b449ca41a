"""The live view over HTTP: who may look, what is shown, what a browser may do with it."""

from html.parser import HTMLParser
from pathlib import Path

import httpx2
import pytest

from kopt.config.settings import Settings
from kopt.server.live_view.run_pages import RunPages
from kopt.server.live_view.view_app import view_app
from kopt.server.protocol.web.listen_address import LOOPBACK_NAMES, Access
from support.told_run import told_run

pytestmark = pytest.mark.anyio
TOKEN = "s3cret-Token"
HOSTILE = "</details></section><script>alert(1)</script><img src=//x onerror=alert(1)> & <!--"
ORIGIN = "http://127.0.0.1:8766"


async def _get(
    home: Path, path: str, headers: dict[str, str] | None = None, token: str = TOKEN
) -> httpx2.Response:
    access = Access(frozenset(LOOPBACK_NAMES), frozenset({ORIGIN}))
    transport = httpx2.ASGITransport(view_app(RunPages(Settings(home)), access, TOKEN))
    async with httpx2.AsyncClient(transport=transport, base_url=ORIGIN) as http:
        return await http.get(f"/{token}/{path}", headers=headers)


class _Page(HTMLParser):
    """Collects tags and attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], f"{TOKEN}x", "%00", "é"])
async def test_nothing_is_shown_without_the_token(tmp_path: Path, token: str) -> None:
    told_run(tmp_path).close()
    for path in ("", "events", "runs/run-1", "assets/view.js"):
        answer = await _get(tmp_path, path, token=token)
        assert answer.status_code == 403 and "run-1" not in answer.text


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8766", "127.0.0.1.evil.example"])
async def test_page_that_rebinds_its_name_gets_nothing_though_it_knew_the_token(
    tmp_path: Path, host: str
) -> None:
    assert (await _get(tmp_path, "", {"Host": host})).status_code == 421


async def test_scripts_of_other_pages_get_nothing(tmp_path: Path) -> None:
    assert (await _get(tmp_path, "", {"Origin": "https://evil.example"})).status_code == 403
    assert (await _get(tmp_path, "", {"Origin": ORIGIN})).status_code == 200


async def test_every_answer_forbids_what_pages_do_not_need(tmp_path: Path) -> None:
    for path in ("", "runs/nothing", "assets/page.css"):
        headers = (await _get(tmp_path, path)).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"


async def test_hostile_notes_sources_and_summaries_stay_text(tmp_path: Path) -> None:
    told_run(tmp_path, HOSTILE).close()
    for path in ("", "runs/run-1", "?runs=run-1,run-1", "runs/run-1/code/2"):
        answer = await _get(tmp_path, path)
        assert answer.status_code == 200
        page = _Page(answer.text)
        assert "img" not in page.tags and page.tags.count("script") in (0, 2)
        assert not [name for name, _ in page.attributes if name.startswith("on")]
        assert "alert(1)" not in [value for _, value in page.attributes]
    assert "&lt;script&gt;alert(1)" in (await _get(tmp_path, "runs/run-1/code/2")).text


async def test_page_of_a_run_has_its_parts_and_loads_code_when_it_is_unfolded(
    tmp_path: Path,
) -> None:
    told_run(tmp_path).close()
    text = (await _get(tmp_path, "runs/run-1")).text
    assert f'data-events="/{TOKEN}/runs/run-1/events"' in text
    assert f'data-address="/{TOKEN}/runs/run-1/code/4"' in text
    assert "Candidate 4 passed the full check" in text and "1.400x (1.395 to 1.405)" in text
    assert "// r2/b0 0" not in text
    code = (await _get(tmp_path, "runs/run-1/code/4")).text
    assert "<ins>+// r2/b0 0</ins>" in code and "<h3>Changes from #1</h3>" in code


async def test_runs_stand_side_by_side_and_no_speedup_is_made_of_two(tmp_path: Path) -> None:
    told_run(tmp_path).close()
    told_run(tmp_path, run_id="run-2").close()
    for query in ("?runs=run-2,run-1", "?runs=run-2&runs=run-1"):
        text = (await _get(tmp_path, query)).text
        assert f'data-events="/{TOKEN}/events{query.replace("&", "&amp;")}"' in text
        assert text.count("<td>1.380x (1.375 to 1.385)</td>") == 2
        assert "over that run&#39;s own baseline" in text and "They are the same." in text


async def test_list_links_runs_and_names_the_damaged_ones(tmp_path: Path) -> None:
    told_run(tmp_path).close()
    (tmp_path / "runs" / "run-0").mkdir()
    (tmp_path / "runs" / "run-0" / "run.sqlite").write_text("no database at all")
    text = (await _get(tmp_path, "")).text
    assert f'<a href="/{TOKEN}/runs/run-1">run-1</a>' in text
    assert "run-0 cannot be read" in text
    assert "is damaged" in (await _get(tmp_path, "runs/run-0")).text


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("runs/run-2", "no run matches"),
        ("?runs=run-1,run-2", "no run matches"),
        ("?runs=a,b,c,d,e", "at most 4"),
        ("runs/run-1/code/5", "no candidate 5"),
    ],
)
async def test_what_is_not_there_is_said_in_words(tmp_path: Path, path: str, said: str) -> None:
    told_run(tmp_path).close()
    answer = await _get(tmp_path, path)
    assert answer.status_code == 404 and said in answer.text
