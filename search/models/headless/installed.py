"""The coding agents on this machine: where each is, whether it is logged in, what it is told."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from kopt.config.errors import SetupError
from kopt.config.providers import NAMES, Provider
from kopt.config.settings import client_environment
from kopt.tools.facts.wording import plain_beginning

_LIMIT_S = 30.0
_MOST_SAID = 200
_PROGRAMS: dict[Provider, str] = {"claude-code": "claude", "codex": "codex"}
_INSTALL: dict[Provider, str] = {
    "claude-code": "npm install -g @anthropic-ai/claude-code, then `claude` and /login",
    "codex": "npm install -g @openai/codex, then `codex login`",
}
_LOGIN: dict[Provider, str] = {
    "claude-code": "start `claude` and /login, or set CLAUDE_CODE_OAUTH_TOKEN (claude setup-token)",
    "codex": "run `codex login`",
}


@dataclass(frozen=True)
class InstalledClient:
    """A client that was found, and the environment that it gets."""

    provider: Provider
    program: Path
    environment: Mapping[str, str] = field(repr=False)

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Return what the client answers to a question that asks no model.

        Raises:
            SetupError: It cannot be started, or does not answer.
        """
        try:
            return subprocess.run(
                (str(self.program), *words),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                env=dict(self.environment),
                timeout=_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            question = " ".join(words)
            raise SetupError(
                f"{self.program} {question} does not end: look at it in a terminal"
            ) from error
        except OSError as error:
            raise SetupError(f"{self.program} cannot be started: {error.strerror}") from error

    @property
    def version(self) -> str:
        """Its version as it says it; empty where it says none."""
        return plain_beginning(self.ask("--version").stdout.strip(), _MOST_SAID)


def find_client(provider: Provider) -> InstalledClient:
    """Return the client of that name.

    Raises:
        SetupError: It is not on PATH; the message says how to install it.
    """
    name, environment = _PROGRAMS[provider], client_environment()
    found = shutil.which(name, path=environment.get("PATH", os.defpath))
    if found is None:
        raise SetupError(
            f"{NAMES[provider]} is not installed: no `{name}` on PATH ({_INSTALL[provider]})"
        )
    return InstalledClient(provider, Path(found).absolute(), environment)


def require_login(client: InstalledClient) -> None:
    """Refuse a client that says that nobody is logged in; no model is asked.

    A client too old for the question is believed: its first turn tells.

    Raises:
        SetupError: Nobody is, or the client cannot be asked.
    """
    if client.provider == "codex":
        answer = client.ask("login", "status")
        said = (answer.stdout + answer.stderr).lower()
        is_out = answer.returncode != 0 and "not logged in" in said
    else:
        is_out = _says_out(client.ask("auth", "status").stdout)
    if is_out:
        raise SetupError(
            f"{NAMES[client.provider]} is not logged in (a key in the environment is not used):"
            f" {_LOGIN[client.provider]}"
        )


def _says_out(text: str) -> bool:
    try:
        answer = cast(object, json.loads(text))
    except (ValueError, RecursionError):
        return False
    match answer:
        case {"loggedIn": False}:
            return True
        case _:
            return False
