"""What the client of the Messages API raises, as a `CallFailed` that says who can mend it.

Source:
    The error types of the `anthropic` package and https://docs.anthropic.com/en/api/errors. An
    error inside a stream has the status 200 and tells its kind by `type` alone.
"""

from typing import cast

import anthropic
import httpx2

from .call_errors import CallFailed, FailureKind

_STATUS_OF_TYPE = {
    "api_error": 500,
    "authentication_error": 401,
    "billing_error": 402,
    "invalid_request_error": 400,
    "not_found_error": 404,
    "overloaded_error": 529,
    "permission_error": 403,
    "rate_limit_error": 429,
    "request_too_large": 413,
    "timeout_error": 504,
}
_USER_ADVICE = {
    401: "the service does not take the key: set ANTHROPIC_API_KEY to a valid one",
    402: "the account behind the key cannot pay: mend that, then resume the run",
    403: "the key may not do this: use another key or another model",
    404: "the service does not know the model, or not for this key: name another in the settings",
}
_LATER = (408, 409, 429)
_TIMED_OUT = (408, 504, 524)  # the service, or a gateway before it, had begun to work on the call
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)


def failure_of_call(error: Exception, began: bool) -> CallFailed:
    """Return what went wrong; `began` says whether the service had begun to answer."""
    if isinstance(error, anthropic.APIStatusError):
        return _of_status(error, began)
    if isinstance(error, anthropic.APIConnectionError):
        return _of_connection(cast(Exception, error.__cause__ or error))
    if isinstance(error, httpx2.HTTPError):
        return CallFailed(
            kind="time",
            message=f"the connection broke before the reply was complete ({_name(error)})",
            may_cost=True,
        )
    return broken_reply(f"{_name(error)}: {error}")


def broken_reply(what: str) -> CallFailed:
    """Return that a reply is not of the form that the service promises."""
    return CallFailed(kind="us", message=f"the reply is broken: {what}", may_cost=True)


def _of_status(error: anthropic.APIStatusError, began: bool) -> CallFailed:
    status = error.status_code
    if status == 200:  # inside a stream
        status = _STATUS_OF_TYPE.get(str(error.type), 500)
    said = error.api_message or "no explanation"
    kind: FailureKind = "us"
    message = f"the service refuses the request (HTTP {status}): {said}"
    if status in _USER_ADVICE:
        kind, message = "user", f"{_USER_ADVICE[status]} (HTTP {status}: {said})"
    elif 300 <= status < 400:
        kind, message = "user", f"ANTHROPIC_BASE_URL leads elsewhere (HTTP {status}): name that"
    elif status in _LATER or status >= 500:
        kind, message = "time", f"the service cannot answer now (HTTP {status}): {said}"
    return CallFailed(
        kind=kind,
        message=message,
        status=status,
        request_id=error.request_id,
        retry_after_s=_retry_after_s(error.response.headers),
        may_cost=began or status in _TIMED_OUT,
    )


def _of_connection(cause: Exception) -> CallFailed:
    if isinstance(cause, httpx2.UnsupportedProtocol):
        message = "ANTHROPIC_BASE_URL is no address: it begins with http:// or https://"
        return CallFailed(kind="user", message=message)
    was_sent = not isinstance(cause, _NEVER_SENT)
    message = f"the service did not answer in time ({_name(cause)})"
    if not was_sent:  # the address is not shown: it may hold a password
        message = (
            f"the service cannot be reached ({_name(cause)}): look at the network, and at"
            " ANTHROPIC_BASE_URL if it is set"
        )
    return CallFailed(kind="time", message=message, may_cost=was_sent)


def _retry_after_s(headers: httpx2.Headers) -> float | None:
    """Return how long the service asks to wait; None if it does not, or not in seconds."""
    for name, unit_s in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit_s
        except ValueError:
            continue
        if 0.0 <= seconds < float("inf"):
            return seconds
    return None


def _name(error: Exception) -> str:
    return type(error).__name__
