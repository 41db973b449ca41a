"""The Skills extension (SEP-2640): the skill `kopt` as resources, with digests to verify them.

A client that knows the extension asks for the skill's entry and loads its files as they are needed;
to any other they are ordinary resources. Nothing here depends on who asks.
"""

import hashlib
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Extension, MethodBinding, ResourceBinding
from mcp.server.mcpserver.resources import TextResource
from mcp.types import INVALID_PARAMS, PaginatedRequestParams, RequestParams

from kopt.server.skill import MAIN_FILE, SKILL, skill_files, skill_frontmatter
from kopt.tools.facts.wording import clipped, plain

ROOT_URI = f"skill://{SKILL}"
SKILL_URI = f"{ROOT_URI}/{MAIN_FILE}"
CACHEABLE_SINCE = "2026-07-28"
"""The revision from which on results say how long they may be kept."""
_MARKDOWN, _FOLDER = "text/markdown", "inode/directory"
_SHOWN_CHARACTERS = 200

Context = ServerRequestContext[Any, Any]


class SkillRef(RequestParams):
    """The parameters of `skills/get`."""

    uri: str
    """The address of a SKILL.md."""


class DirectoryRef(PaginatedRequestParams):
    """The parameters of `resources/directory/read`."""

    uri: str
    """The address of a folder, without a slash at its end."""


class Skills(Extension):
    """Serves the one skill that there is."""

    identifier = "io.modelcontextprotocol/skills"

    def __init__(self, fresh_ms: int) -> None:
        """Serve the skill to clients that may keep its entry for `fresh_ms`."""
        self._fresh_ms = fresh_ms

    def settings(self) -> dict[str, Any]:
        """Return that folders can be listed, too."""
        return {"directoryRead": True}

    def resources(self) -> tuple[ResourceBinding, ...]:
        """Return every file of the skill."""
        return tuple(
            ResourceBinding(TextResource(**_described(name), text=data.decode()))
            for name, data in skill_files().items()
        )

    def methods(self) -> tuple[MethodBinding, ...]:
        """Return what lists skills, gives one and lists a folder of it, in every revision."""
        return (
            MethodBinding("skills/list", PaginatedRequestParams, self._list),
            MethodBinding("skills/get", SkillRef, self._get),
            MethodBinding("resources/directory/read", DirectoryRef, self._children),
        )

    async def _list(self, ctx: Context, page: PaginatedRequestParams) -> dict[str, Any]:
        _refuse_cursor(page)
        return self._cacheable(ctx, {"skills": [skill_entry()]})

    async def _get(self, ctx: Context, ref: SkillRef) -> dict[str, Any]:
        if ref.uri != SKILL_URI:
            raise MCPError(
                INVALID_PARAMS, f"no skill is served at {_shown(ref.uri)}; there is {SKILL_URI}"
            )
        return self._cacheable(ctx, {"skill": skill_entry()})

    async def _children(self, ctx: Context, ref: DirectoryRef) -> dict[str, Any]:
        del ctx
        _refuse_cursor(ref)
        children = _folders().get(ref.uri)
        if children is None:
            raise MCPError(
                INVALID_PARAMS,
                f"{_shown(ref.uri)} is no directory resource; there are {', '.join(_folders())}",
            )
        return {"resources": children}

    def _cacheable(self, ctx: Context, result: dict[str, Any]) -> dict[str, Any]:
        if ctx.protocol_version < CACHEABLE_SINCE:
            return result
        return {**result, "ttlMs": self._fresh_ms, "cacheScope": "public"}


def skill_entry() -> dict[str, Any]:
    """Return the entry of the skill: its frontmatter, and each file with digest and size."""
    resources = [
        {
            "uri": f"{ROOT_URI}/{name}",
            "digest": f"sha256:{hashlib.sha256(data).hexdigest()}",
            "size": len(data),
        }
        for name, data in skill_files().items()
    ]
    return {"uri": SKILL_URI, "frontmatter": skill_frontmatter(), "resources": resources}


def _described(name: str) -> dict[str, Any]:
    """Return what `resources/list` says of a file of the skill."""
    if name == MAIN_FILE:
        said = {key: skill_frontmatter()[key] for key in ("name", "description")}
    else:
        title = skill_files()[name].decode().splitlines()[0].lstrip("# ")
        said = {"name": PurePosixPath(name).name, "description": f"{title} (of the skill {SKILL})"}
    return {"uri": f"{ROOT_URI}/{name}", "mime_type": _MARKDOWN, **said}


def _folders() -> Mapping[str, list[dict[str, Any]]]:
    """Return the children of each folder of the skill, files and folders, by its address."""
    found: dict[str, list[dict[str, Any]]] = {ROOT_URI: []}
    for name in skill_files():
        path = PurePosixPath(name)
        for folder in reversed(path.parents[:-1]):
            uri = f"{ROOT_URI}/{folder}"
            if uri not in found:
                found[uri] = []
                row = {"uri": uri, "name": folder.name, "mimeType": _FOLDER}
                found[_address(folder.parent)].append(row)
        said = _described(name)
        row = {**said, "mimeType": said["mime_type"]}
        del row["mime_type"]
        found[_address(path.parent)].append(row)
    return found


def _address(folder: PurePosixPath) -> str:
    return ROOT_URI if folder == PurePosixPath() else f"{ROOT_URI}/{folder}"


def _refuse_cursor(page: PaginatedRequestParams) -> None:
    """Refuse a cursor: everything is on the first page, so none was ever given."""
    if page.cursor:
        raise MCPError(INVALID_PARAMS, f"no page begins at cursor {_shown(page.cursor)}")


def _shown(text: str) -> str:
    return clipped(plain(text), _SHOWN_CHARACTERS)
