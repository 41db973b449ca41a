"""A request as it may be answered: its text and its numbers, checked."""

from kopt.config.errors import ToolError
from kopt.tools.docs.code_tokens import query_terms
from kopt.tools.docs.records import SearchRequest

MOST_HITS = 50
MOST_PAGES = 100
LEAST_TOKENS, MOST_TOKENS = 100, 500_000
MOST_CHARACTERS = 16_384


def checked_query(request: SearchRequest) -> str:
    """Return the query as text that can be stored and shown; a symbol may stand for it.

    Raises:
        ToolError: It has no word to search for or is too long, or a number of the request is not
            among what is allowed, which the message says.
    """
    for name, value, least, most in (
        ("k", request.k, 1, MOST_HITS),
        ("page", request.page, 1, MOST_PAGES),
        ("max_tokens", request.max_tokens, LEAST_TOKENS, MOST_TOKENS),
    ):
        if not least <= value <= most:
            raise ToolError(f"{name} is {value}; it must be {least} to {most:,}")
    asked = request.query.strip() or request.symbol or ""
    query = plain_text(asked)
    if len(query) > MOST_CHARACTERS:
        raise ToolError(
            f"the query has {len(query):,} characters; at most {MOST_CHARACTERS:,} are read:"
            " ask in a few words or with a name"
        )
    if not query_terms(query):
        raise ToolError(
            f"the query {query[:80]!r} has no word to search for: name a technique, an"
            " instruction, a type or a status, e.g. 'cp.async pipeline'"
        )
    return query


def plain_text(text: str) -> str:
    """Return `text` without what UTF-8 has no bytes for, which a terminal can hand over."""
    return text.encode("utf-8", errors="replace").decode()
