"""What every agent of a run works with, whatever its role."""

from dataclasses import dataclass

from .agent_tools import AgentTools
from .briefing import Briefing
from .conversation import Desk


@dataclass(frozen=True)
class Means:
    """Whom to ask, what to say first, what to work with."""

    desk: Desk
    briefing: Briefing
    tools: AgentTools
