"""Prompts: the text files of `search/prompts`, and fences around texts of others inside them.

A placeholder is `{{name}}`. Which ones a prompt has to have stands here, so that a file and what
fills it cannot drift apart. A value is put in as it is and never looked at for placeholders.

Sources, documents, messages of compilers and texts of models stand between two lines that carry the
digest of what is between them. No text can hold its own digest, so that none can end its fence and
go on as if kopt spoke; the common part of the system prompt says that what is fenced is data.
"""

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

from kopt.config.errors import SetupError
from kopt.tools.facts.wording import lines, plain

_MARK_DIGITS = 16
_FOLDERS = re.compile(r"(?<![\w<.])/(?:[\w.+~-]+/)+")


def fenced(title: str, text: str) -> str:
    """Return `text` as data under `title`: control characters shown, no place of this machine."""
    body = lines(text)
    mark = hashlib.sha256(body.encode(errors="replace")).hexdigest()[:_MARK_DIGITS]
    return f"<<<data {mark}: {plain(title)}>>>\n{body}\n<<<end of data {mark}>>>"


def without_folders(text: str) -> str:
    """Return `text` on one line, of every absolute path only what it ends with."""
    return _FOLDERS.sub("", plain(text))


PLACEHOLDERS: Mapping[str, frozenset[str]] = {
    name: frozenset(placeholders.split())
    for name, placeholders in {
        "kernel": "kernel definition guide families techniques gpu speed start documents",
        "speed_sim": "",
        "speed_gpu": "",
        "planner": "",
        "coder": "tool_calls",
        "fixer": "tool_calls",
        "reflector": "",
        "combiner": "tool_calls",
        "learner": "",
        "verifier": "",
        "minimal": "",
        "plan_round": "round slots reserve candidates families evidence memory lessons sources",
        "write_candidate": "hypothesis parents evidence memory lessons",
        "merge_candidates": "hypothesis parents evidence memory lessons",
        "write_minimal": "parents evidence",
        "mend_minimal": "source findings",
        "mend_failed": "hypothesis source findings lessons",
        "mend_regressed": "hypothesis source findings lessons",
        "reflect_round": "round candidates families evidence lessons",
        "evaluate_policy": "samples calibration entries",
        "analyze_gaps": "evaluation gaps entries",
        "update_memory": "analysis samples entries",
        "decide_state": "signature states",
        "propose_techniques": "most state signature",
        "verify_candidate": "claims checked source",
        "repair_answer": "mistakes",
        "repair_candidate": "mistakes",
        "repair_cut": "",
    }.items()
}
"""The placeholders of each file of `search/prompts`, by its name without `.md`."""

_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}")


def render_prompt(name: str, values: Mapping[str, str] | None = None) -> str:
    """Return the prompt `name` with each placeholder replaced by its value.

    Raises:
        SetupError: The prompts of this installation are damaged.
        ValueError: `values` are not exactly those that the prompt leaves open.
    """
    filled = values or {}
    if filled.keys() != PLACEHOLDERS[name]:
        wrong = sorted(filled.keys() ^ PLACEHOLDERS[name])
        raise ValueError(f"prompt {name}: {', '.join(wrong)} is missing or too much")
    return _PLACEHOLDER.sub(lambda found: filled[found[1]], _loaded()[name])


def checked_prompt(name: str, text: str, expected: frozenset[str]) -> str:
    """Return `text` without the blanks around it, once its placeholders are `expected`.

    Raises:
        SetupError: One is unknown, missing or badly written; the message names it.
    """
    found = set(_PLACEHOLDER.findall(text))
    rest = _PLACEHOLDER.sub("", text)
    mistakes = [f"unknown placeholder {one}" for one in sorted(found - expected)]
    mistakes += [f"no placeholder {one}" for one in sorted(expected - found)]
    if "{{" in rest or "}}" in rest:
        mistakes.append("double braces that are no placeholder")
    if not text.strip():
        mistakes.append("it is empty")
    if mistakes:
        raise SetupError(f"prompt {name}.md: {'; '.join(mistakes)}; install kopt again")
    return text.strip()


@lru_cache
def _loaded() -> Mapping[str, str]:
    folder = files("kopt.search").joinpath("prompts")
    loaded: dict[str, str] = {}
    for name, expected in PLACEHOLDERS.items():
        try:
            text = folder.joinpath(f"{name}.md").read_text("utf-8")
        except OSError as error:
            raise SetupError(f"prompt {name}.md is missing: install kopt again") from error
        loaded[name] = checked_prompt(name, text, expected)
    return loaded
