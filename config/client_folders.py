"""Where MCP clients keep their settings; `settings.py` reads it from the environment."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ClientFolders:
    """Where MCP clients keep their settings: the home folder and what moves a part of it."""

    home: Path
    """The user's home folder."""
    config: Path
    """XDG_CONFIG_HOME, default ~/.config."""
    applications: Path
    """Desktop applications keep their settings here: in `config`, but for those of a Mac."""
    claude: Path | None = None
    """CLAUDE_CONFIG_DIR: Claude Code's folder, if moved."""
    codex: Path | None = None
    """CODEX_HOME: Codex's folder, if moved."""
    gemini: Path | None = None
    """GEMINI_CLI_HOME: what Gemini CLI takes for the home folder, if moved."""
