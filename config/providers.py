"""Who answers the agents of a run: the Messages API by a key, or a coding agent that is logged in.

A model of a coding agent is written with its provider before it, `claude-code:claude-opus-5-5`,
wherever it is recorded or shown, so that a ledger tells who answered and how its cost is known.
"""

from typing import Literal

Provider = Literal["anthropic", "claude-code", "codex"]
"""`anthropic`: the Messages API, by ANTHROPIC_API_KEY. The others: a client on this machine, by its
own login."""
PROVIDERS: tuple[Provider, ...] = ("anthropic", "claude-code", "codex")
NAMES: dict[Provider, str] = {
    "anthropic": "Claude",
    "claude-code": "Claude Code",
    "codex": "Codex",
}
"""Each as it is called in sentences."""
CostKind = Literal["computed", "reported", "unavailable"]
"""`computed` from tokens and the table of prices, `reported` by the client, or not known at all."""
COST_KINDS: dict[Provider, CostKind] = {
    "anthropic": "computed",
    "claude-code": "reported",
    "codex": "unavailable",
}
OWN_CHOICE = "default"
"""The model of a role that leaves the choice to the client."""
_CLAUDE = "claude-"


def asked_name(provider: Provider, model: str) -> str:
    """Return the name by which `model` of the settings is asked, recorded and shown.

    Codex has no Claude: a role that names one is asked with the model that Codex itself chooses.
    """
    if provider == "anthropic":
        return model
    own = OWN_CHOICE if provider == "codex" and model.startswith(_CLAUDE) else model
    return f"{provider}:{own}"


def provider_of(asked: str) -> Provider:
    """Return who answers under a name that `asked_name` gave."""
    for provider in PROVIDERS:
        if asked.startswith(f"{provider}:"):
            return provider
    return "anthropic"


def own_name(asked: str) -> str:
    """Return the name by which the provider itself knows the model."""
    return asked if provider_of(asked) == "anthropic" else asked.partition(":")[2]


def cost_kind(asked: str) -> CostKind:
    """Return how the cost of a call is known, by the name that it was asked under."""
    return COST_KINDS[provider_of(asked)]
