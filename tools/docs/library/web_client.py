"""HTTP as this folder uses it: one client, and failures as one line that says what to do."""

from collections.abc import Generator
from contextlib import contextmanager

import httpx2

from kopt import __version__

from .unavailable import SourceUnavailable

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
    """Do nothing for a good answer.

    Args:
        response: The answer.
        what: That was asked for, for the message.

    Raises:
        SourceUnavailable: The answer is an error.
    """
    if response.is_success:
        return
    host, status = response.url.host, response.status_code
    if status in (401, 403):
        reason = "refuses access: check the credentials in PIP_INDEX_URL"
    elif status in (404, 410):
        reason = f"does not have {what}: set PIP_INDEX_URL to an index that has it"
    elif status == 407:
        reason = "is behind a proxy that wants credentials: set them in HTTPS_PROXY"
    else:
        reason = f"fails on {what}: try again later"
    raise SourceUnavailable(f"{host} answers {status}: it {reason}")


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
