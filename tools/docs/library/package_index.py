"""Where the package index keeps a pinned file: the simple API in JSON, or HTML where it has none.

What the index says is not trusted: a file counts by its pinned hash alone.
Source: https://packaging.python.org/specifications/simple-repository-api/ (PEP 503, PEP 691).
"""

import json
from collections.abc import Generator
from contextlib import contextmanager
from html.parser import HTMLParser

import httpx2

from kopt import __version__
from kopt.tools.docs.sources import SourceUnavailable

_JSON = "application/vnd.pypi.simple.v1+json"
MOST_PAGE_BYTES = 32_000_000
"""Limit on a project page, unpacked: enough for any project with thousands of files."""
_ACCEPT = f"{_JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"


def file_url(client: httpx2.Client, index: str, project: str, filename: str) -> httpx2.URL:
    """Return the address of `filename` at `index`, e.g. https://pypi.org/simple.

    Raises:
        SourceUnavailable: The index cannot be asked or does not list the file.
    """
    page = _project_page(index, project)
    try:
        with client.stream("GET", page, headers={"Accept": _ACCEPT}) as response:
            refuse_status(response, project)
            is_html = "html" in response.headers.get("content-type", "")
            address = _listed(_text(response), page.host, is_html=is_html).get(filename)
        if address is None:
            raise SourceUnavailable(
                f"{page.host} does not list {filename}: set PIP_INDEX_URL to an index that has it"
            )
        return _with_credentials(response.url.join(address), page)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise failure(error, page.host) from error


def _project_page(index: str, project: str) -> httpx2.URL:
    try:
        page = httpx2.URL(f"{index.rstrip('/')}/{project}/")
    except httpx2.InvalidURL as error:
        raise SourceUnavailable("PIP_INDEX_URL is no address of a package index") from error
    if page.scheme not in ("http", "https") or not page.host:
        raise SourceUnavailable(
            "the package index must have an http:// or https:// address: correct PIP_INDEX_URL"
        )
    return page


def _text(response: httpx2.Response) -> str:
    """Return the answer as UTF-8, whatever it says of itself."""
    page = bytearray()
    for block in response.iter_bytes():
        page += block
        if len(page) > MOST_PAGE_BYTES:
            raise SourceUnavailable(
                f"{response.url.host} answers with more than {MOST_PAGE_BYTES:,} bytes: "
                "correct PIP_INDEX_URL"
            )
    return page.decode("utf-8", "replace")


def _listed(text: str, host: str, *, is_html: bool) -> dict[str, str]:
    """Return addresses by filename."""
    try:
        if is_html:
            links = _Links()
            links.feed(text)
            return links.addresses
        return {str(file["filename"]): str(file["url"]) for file in json.loads(text)["files"]}
    except (ValueError, KeyError, TypeError, AssertionError, RecursionError) as error:
        # HTMLParser asserts on some broken declarations
        raise SourceUnavailable(
            f"{host} does not answer as a package index: correct PIP_INDEX_URL"
        ) from error


class _Links(HTMLParser):
    """Collects the links of a project page; the text of a link is the file's name."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: dict[str, str] = {}
        self._address: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self._address = dict(attrs).get("href")

    def handle_data(self, data: str) -> None:
        if self._address is not None and data.strip():
            self.addresses[data.strip()] = self._address

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._address = None


def _with_credentials(url: httpx2.URL, index: httpx2.URL) -> httpx2.URL:
    """Return `url` with the index's user and password if it is on that very host."""
    bare = url.copy_with(fragment=None)
    same_place = (url.scheme, url.host, url.port) == (index.scheme, index.host, index.port)
    if same_place and index.userinfo and not url.userinfo:
        return bare.copy_with(userinfo=index.userinfo)
    return bare


CONNECT_TIMEOUT_S = 15.0
SILENCE_TIMEOUT_S = 30.0
"""Longest wait for further bytes; a whole download may take any time."""

NO_NETWORK = "check network and proxy, or index installed packages with --installed"


@contextmanager
def web_client() -> Generator[httpx2.Client]:
    """Yield a client that obeys the proxy variables and uses the certificates of the system.

    Raises:
        SourceUnavailable: The proxy variables cannot be used.
    """
    timeout = httpx2.Timeout(SILENCE_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
    headers = {"User-Agent": f"kopt/{__version__}", "Accept-Encoding": "identity"}
    try:
        client = httpx2.Client(timeout=timeout, follow_redirects=True, headers=headers)
    except (ImportError, ValueError, httpx2.InvalidURL) as error:
        raise SourceUnavailable(
            "the proxy that HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names cannot be used: "
            "it must be an http:// or https:// address"
        ) from error
    with client:
        yield client


def refuse_status(response: httpx2.Response, what: str) -> None:
    """Raise SourceUnavailable unless `response` is a good answer to being asked for `what`."""
    if response.is_success:
        return
    status = response.status_code
    match status:
        case 401 | 403:
            reason = "refuses access: check the credentials in PIP_INDEX_URL"
        case 404 | 410:
            reason = f"does not have {what}: set PIP_INDEX_URL to an index that has it"
        case 407:
            reason = "is behind a proxy that wants credentials: set them in HTTPS_PROXY"
        case _:
            reason = f"fails on {what}: try again later"
    raise SourceUnavailable(f"{response.url.host} answers {status}: it {reason}")


def failure(error: httpx2.HTTPError | httpx2.InvalidURL, host: str) -> SourceUnavailable:
    """Return what a failed request means. Its text is httpx's: it has no credentials."""
    if isinstance(error, httpx2.ProxyError):
        return SourceUnavailable(f"the proxy to {host} refuses: {error}; {NO_NETWORK}")
    if isinstance(error, httpx2.TimeoutException):
        return SourceUnavailable(
            f"{host} does not answer within {SILENCE_TIMEOUT_S:.0f} s; {NO_NETWORK}"
        )
    if isinstance(error, httpx2.ConnectError):
        return SourceUnavailable(f"cannot reach {host}: {error}; {NO_NETWORK}")
    return SourceUnavailable(f"{host} cannot be read: {error or type(error).__name__}")
