"""Codex as a model: `codex exec`, one process a turn, without tools.

What a model of Codex may use is in its catalogue of models and not in its options alone: so the
client gets its own catalogue back with the tools taken out. The user's settings, rules and notes
are left out; the login is the user's. It reports tokens and no cost.

Source:
    `codex exec --help`, `codex debug models`, `codex features list` and the events of Codex
    0.169.0, tests/clients/test_with_providers.py.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from kopt.config.errors import SetupError
from kopt.config.providers import OWN_CHOICE, Provider, own_name
from kopt.search.models.errors import CallFailed
from kopt.search.models.model import ModelRequest, Usage

from .bounded_process import Ended, ProgramStart
from .client import (
    MOST_JUDGED,
    UNTIL_TOMORROW_S,
    Document,
    Said,
    ended_early,
    events,
    failed,
    tokens,
)
from .installed import InstalledClient
from .turn import Turn

_FEATURES = (
    *("apps", "browser_use", "computer_use", "goals", "hooks", "image_generation"),
    *("in_app_browser", "multi_agent", "multi_agent_v2", "plugins", "shell_tool"),
    *("skill_mcp_dependency_install", "sleep_tool", "tool_suggest", "unified_exec", "view_image"),
)
"""Features that give its model tools."""
_TOOLS_OF_MODEL = ("tool_mode", "multi_agent_version", "apply_patch_tool_type")
_SETTINGS = (
    'web_search="disabled"',
    "include_apps_instructions=false",
    "include_collaboration_mode_instructions=false",
    "include_environment_context=false",
    "include_permissions_instructions=false",
    "project_doc_max_bytes=0",
    "skills.include_instructions=false",
)
_WORDS = ("agent_message", "reasoning", "error")
"""Items of a turn in which no tool was used."""
_LOGIN = "is not logged in: run `codex login`"


@dataclass(frozen=True)
class Codex:
    """Codex, headless."""

    installed: InstalledClient
    catalogue: str
    """Its models as JSON, without tools."""

    @property
    def provider(self) -> Provider:
        """Which client it is."""
        return "codex"

    def invocation(self, turn: Turn, folder: Path) -> ProgramStart:
        """Return what runs one turn; the conversation goes through a pipe."""
        request = turn.request
        given = {
            "system.md": turn.system,
            "schema.json": json.dumps(turn.schema),
            "models.json": self.catalogue,
        }
        for name, text in given.items():
            (folder / name).write_text(text, "utf-8")
        model = own_name(request.model)
        settings = (
            *_SETTINGS,
            f"model_instructions_file={json.dumps(str(folder / 'system.md'))}",
            f"model_catalog_json={json.dumps(str(folder / 'models.json'))}",
            f"model_reasoning_effort={json.dumps(request.effort)}",
        )
        words = (
            *(str(self.installed.program), "exec", "--json", "--ephemeral"),
            *("--ignore-user-config", "--ignore-rules", "--skip-git-repo-check"),
            *("--sandbox", "read-only", "--output-schema", str(folder / "schema.json")),
            *(word for one in _FEATURES for word in ("--disable", one)),
            *(word for one in settings for word in ("--config", one)),
            *(() if model == OWN_CHOICE else ("--model", model)),
            "-",
        )
        text = "\n\n".join(turn.texts)
        return ProgramStart(words, text, folder / "work", self.installed.environment)

    def read(self, request: ModelRequest, ended: Ended) -> Said:
        """Return what it has said.

        Raises:
            CallFailed: It gave no answer.
        """
        told = events(ended.output)
        if ended.cut or not any(one.get("type") == "turn.started" for one in told):
            raise ended_early(self.provider, ended, has_begun=bool(told))
        items = [cast(Document, one["item"]) for one in told if isinstance(one.get("item"), dict)]
        used = {str(one.get("type")) for one in items} - set(_WORDS)
        if used:
            what = f"used tools of its own ({', '.join(sorted(used))}), which kopt asks it not to"
            raise failed(self.provider, "user", f"{what}: update it", may_cost=True)
        done = next((one for one in told if one.get("type") == "turn.completed"), None)
        if done is None:
            raise self._failure(told, ended)
        said = [one.get("text") for one in items if one.get("type") == "agent_message"]
        text = said[-1] if said and isinstance(said[-1], str) else ""
        usage = _usage(done)
        if not usage.total_tokens:
            raise failed(self.provider, "us", "does not say how many tokens it took", may_cost=True)
        return Said(_value(text), text, usage, model=own_name(request.model))

    def _failure(self, told: list[Document], ended: Ended) -> CallFailed:
        said = ""
        for event in told:
            match event:
                case {"type": "turn.failed", "error": {"message": str(message)}}:
                    said = message
                case {"type": "error", "message": str(message)}:
                    said = said or message
                case _:
                    continue
        if not said:
            return ended_early(self.provider, ended, has_begun=True)
        return self._told(said)

    def _told(self, said: str) -> CallFailed:
        """Return the failure that Codex tells in words; it has no codes for them."""
        said = said[:MOST_JUDGED]
        lower = said.lower()
        what = f"has no answer: {said}"
        if "usage limit" in lower:
            failure = failed(self.provider, "time", what)
            failure.status, failure.retry_after_s = 429, UNTIL_TOMORROW_S
        elif re.search(r"\b429\b", said):
            failure = failed(self.provider, "time", what)
            failure.status = 429
        elif re.search(r"\b401\b|log ?in|logged", lower):
            failure = failed(self.provider, "user", f"{_LOGIN} ({said})")
            failure.status = 401
        elif re.search(r"\b40[34]\b|model.*(not supported|does not exist|not found)", lower):
            failure = failed(self.provider, "user", what)
        elif re.search(r"\b4[0-9][0-9]\b|invalid_request", lower):
            failure = failed(self.provider, "us", what)
        else:
            failure = failed(self.provider, "time", what, may_cost=True)
        return failure


def without_tools(catalogue: str) -> str:
    """Return Codex's catalogue of models with the tools of each taken out.

    Raises:
        SetupError: It is none.
    """
    document = _value(catalogue)
    models = cast(Document, document).get("models") if isinstance(document, dict) else None
    entries = cast(list[object], models) if isinstance(models, list) else []
    kept = [_without_tools(cast(Document, one)) for one in entries if isinstance(one, dict)]
    if not kept:
        raise SetupError(
            "`codex debug models` lists no models, without which kopt cannot take Codex's own tools"
            " away: update Codex"
        )
    return json.dumps({"models": kept})


def _without_tools(model: Document) -> Document:
    kept = {name: value for name, value in model.items() if name not in _TOOLS_OF_MODEL}
    return {**kept, "experimental_supported_tools": []}


def _usage(done: Document) -> Usage:
    """Return the tokens of a turn; the cached ones are told as a part of the input."""
    counts = done.get("usage")
    told = cast(Document, counts) if isinstance(counts, dict) else {}
    read, written = (
        tokens(told.get(name)) for name in ("cached_input_tokens", "cache_write_input_tokens")
    )
    return Usage(
        input_tokens=max(0, tokens(told.get("input_tokens")) - read - written),
        cache_write_5m_tokens=written,
        cache_read_tokens=read,
        output_tokens=tokens(told.get("output_tokens")),
    )


def _value(text: str) -> object:
    """Return the JSON that a text is; None for another one."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
