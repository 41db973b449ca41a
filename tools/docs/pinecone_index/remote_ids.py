"""The id of a chunk in Pinecone: its uid in ASCII, which is all that ids may have."""

from urllib.parse import quote, unquote

MOST_ID_BYTES = 512
_KEPT = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")


def remote_id(uid: str) -> str:
    """Return the id of a uid."""
    return quote(uid, safe=_KEPT)


def uid_of(id_: str) -> str:
    """Return the uid of an id."""
    return unquote(id_)
