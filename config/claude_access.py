"""How Claude is reached: the secret and the address. Shown nowhere, given to no other process."""

from dataclasses import dataclass, field

DEFAULT_BASE_URL = "https://api.anthropic.com"


@dataclass(frozen=True)
class ClaudeAccess:
    """What a request carries; exactly one of key and token is set."""

    api_key: str | None = field(default=None, repr=False)
    """ANTHROPIC_API_KEY."""
    auth_token: str | None = field(default=None, repr=False)
    """ANTHROPIC_AUTH_TOKEN, where there is no key."""
    base_url: str = field(default=DEFAULT_BASE_URL, repr=False)
    """ANTHROPIC_BASE_URL: a gateway, or a stand-in. It may hold a password."""
