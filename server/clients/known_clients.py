"""The clients that `kopt setup` knows, by the names of the command line."""

from .claude_code import CLAUDE_CODE
from .claude_desktop import CLAUDE_DESKTOP
from .client import Client
from .codex import CODEX
from .cursor import CURSOR
from .gemini import GEMINI
from .opencode import OPENCODE
from .vscode import VSCODE

CLIENTS: dict[str, Client] = {
    client.key: client
    for client in (CLAUDE_CODE, CLAUDE_DESKTOP, CODEX, GEMINI, VSCODE, CURSOR, OPENCODE)
}
