"""The skill `kopt` that teaches agents the work with kopt: its files, frontmatter and sections.

There is one copy, in the Claude Code plugin `server/plugin`. The MCP server serves it, `kopt setup
--skill` writes it for clients that read skills from a folder, and prompts quote sections of it.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

SKILL = "kopt"
"""The skill's name, and so that of its folder."""
MAIN_FILE = "SKILL.md"
_FOLDER = Path(__file__).parent / "plugin" / "skills" / SKILL
_FENCE = "---\n"


@cache
def skill_files() -> Mapping[str, bytes]:
    """Return the content of each file, all Markdown, by its path in the skill; SKILL.md first."""
    names = {path.relative_to(_FOLDER).as_posix(): path for path in _FOLDER.rglob("*.md")}
    ordered = sorted(names, key=lambda name: (name != MAIN_FILE, name))
    return {name: names[name].read_bytes() for name in ordered}


def main_text() -> str:
    """Return SKILL.md."""
    return skill_files()[MAIN_FILE].decode()


def skill_frontmatter() -> dict[str, Any]:
    """Return the frontmatter of SKILL.md, every field as it stands there."""
    _, written, _ = main_text().split(_FENCE, 2)
    fields: dict[str, Any] = yaml.safe_load(written)
    return fields


def skill_section(title: str) -> str:
    """Return the section of SKILL.md under the heading `title`, without the heading.

    Raises:
        KeyError: There is no such section.
    """
    sections = main_text().split("\n## ")[1:]
    texts = dict(section.split("\n", 1) for section in sections)
    return texts[title].strip()
