"""What every agent of a run works with, whatever its role."""

from dataclasses import dataclass

from kopt.config.search_settings import Role

from .agent_tools import AgentTools
from .briefing import Briefing
from .conversation import Desk, Opening
from .writing import offered


@dataclass(frozen=True)
class Means:
    """Whom to ask, what to say first, what to work with."""

    desk: Desk
    briefing: Briefing
    tools: AgentTools


def author_opening(means: Means, role: Role, prefix: str, text: str) -> Opening:
    """Return how the conversation of an author begins; a minimal agent can only hand in.

    Args:
        means: What to work with.
        role: coder, combiner or fixer.
        prefix: What the ids of its calls begin with.
        text: The first message.
    """
    settings = means.briefing.settings
    is_minimal = settings.agent == "minimal"
    own = settings.roles.of(role)
    return Opening(
        prefix=prefix,
        role=role,
        settings=own.model_copy(update={"tool_calls": 0}) if is_minimal else own,
        system=means.briefing.system_blocks(role),
        text=text,
        tools=offered(() if is_minimal else means.tools.definitions),
    )
