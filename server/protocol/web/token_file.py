"""Bearer tokens: written to a file, read from it, compared.

A token is known to its file and to the clients that send it. This process keeps digests, and no
message, log, argument or environment variable ever holds a token.
"""

import hashlib
import hmac
import os
import re
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from kopt.config.errors import ToolError
from kopt.config.private_file import lines_of, private_text
from kopt.server.protocol.caller import Caller

MIN_CHARACTERS = 32
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""The form of a token behind `Bearer`. Source: RFC 6750, section 2.1."""
_HOW = "kopt serve --new-token FILE makes one"
_OWNER_DIGITS = 32
_MIN_DISTINCT = 8
"""Fewer different characters were typed, not drawn."""


@dataclass(frozen=True)
class Tokens:
    """The tokens of one file, as digests."""

    digests: tuple[bytes, ...] = field(repr=False)

    def holder(self, token: bytes) -> Caller | None:
        """Return `token-1` for the first token of the file and so on; None for any other text.

        Its owner follows from the token alone, so that lines may come and go around it. Takes the
        same time whichever it is: digests have one length, and each is compared.
        """
        digest = hashlib.sha256(token).digest()
        matches = [hmac.compare_digest(digest, known) for known in self.digests]
        if not any(matches):
            return None
        return Caller(f"token-{matches.index(True) + 1}", _owner(digest))


def _owner(digest: bytes) -> str:
    """Return the owner that a token stands for: a digest of its digest, which lets nobody in."""
    return f"token:{hashlib.sha256(b'owner' + digest).hexdigest()[:_OWNER_DIGITS]}"


def write_token(path: Path) -> None:
    """Write a new token to `path`, which only this user can read.

    Raises:
        ToolError: The file is there already, or cannot be created.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError as error:
        raise ToolError(
            f"{path} exists and is kept: name another file, or remove it, which shuts out"
            " everyone who has its token"
        ) from error
    except OSError as error:
        raise ToolError(f"cannot create {path}: {error.strerror}; name another file") from error
    with os.fdopen(file, "w", encoding="ascii") as stream:
        stream.write(f"{secrets.token_urlsafe(32)}\n")


def read_tokens(path: Path) -> Tokens:
    """Read the tokens of `path`: one a line, blank lines and `#` lines aside.

    Raises:
        ToolError: It cannot be read, others can read it, or a token is too weak; the message has
            the number of the line and never the token.
    """
    digests: list[bytes] = []
    for number, token in lines_of(private_text(path, _HOW)):
        if flaw := _flaw(token):
            raise ToolError(f"line {number} of {path} {flaw}; {_HOW}")
        digests.append(hashlib.sha256(token.encode()).digest())
    if not digests:
        raise ToolError(f"{path} holds no token; {_HOW}")
    return Tokens(tuple(dict.fromkeys(digests)))


def _flaw(token: str) -> str | None:
    if not _TOKEN.fullmatch(token):
        return "has characters that no token has: letters, digits and . _ ~ + / - = are allowed"
    if len(token) < MIN_CHARACTERS:
        return f"has {len(token)} characters; a token needs {MIN_CHARACTERS}"
    if len(set(token)) < _MIN_DISTINCT:
        return "can be guessed: it repeats a few characters"
    return None
