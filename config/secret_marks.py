"""What tells a secret among environment variables: words in its name, or how its value begins."""

import re

_SECRET_WORDS = (
    *("TOKEN", "KEY", "SECRET", "PASSW", "PASSPHRASE", "CREDENTIAL", "AUTH", "COOKIE"),
    "_HEADERS",  # of requests, as several clients of services take them: where they carry keys
)
_PERSONAL_TOKEN = re.compile(r"(?<![A-Z])PATS?(?![A-Z])")
"""In an upper-case name: PAT as a word of its own, which PATH and PATTERN are not."""
_SECRET_VALUE = re.compile(
    r"://[^/\s@]+@"  # a password in an address, or a token as its user
    r"|\b(gh[opusr]_|github_pat_|glpat-|hf_|npm_|pypi-|sk-|xox[abeprs]-|nvapi-|pcsk_|AIza)[\w-]{16,}"
    r"|\b(AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*"  # a JSON web token
    r"|-----BEGIN [A-Z ]*PRIVATE KEY"
)
"""What well-known issuers give out, by the beginnings that they document."""


def looks_secret(name: str, value: str) -> bool:
    """Say whether a variable of this name and value may give access to something."""
    upper = name.upper()
    return (
        any(word in upper for word in _SECRET_WORDS)
        or _PERSONAL_TOKEN.search(upper) is not None
        or _SECRET_VALUE.search(value) is not None
    )
