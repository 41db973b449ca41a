"""The manifests of servers, bundle and plugin say what their formats demand, and the truth."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kopt.server.cli import COMMANDS
from kopt.server.commands.serve import command as serve
from kopt.server.protocol.app import TOOLS
from kopt.server.skill import SKILL

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def _read(path: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((ROOT / path).read_text("utf-8"))
    return document


MCP_JSON = "mcp.json"
MCP, SERVER = _read(MCP_JSON), _read("server.json")
MANIFEST = _read("packaging/mcpb/manifest.json")
MARKETPLACE = _read(".claude-plugin/marketplace.json")
PLUGIN = _read("server/plugin/.claude-plugin/plugin.json")


def test_mcp_json_starts_the_server_of_this_checkout() -> None:
    assert MCP == {
        "mcpServers": {
            "kopt": {"type": "stdio", "command": ".venv/bin/kopt", "args": ["serve"]},
        }
    }
    assert "serve" in COMMANDS and "kopt" in PROJECT["scripts"]


def test_claude_code_reads_the_same_file_through_a_link() -> None:
    """A relative one, so that a checkout can be moved; a source distribution has a copy."""
    path = ROOT / ".mcp.json"
    assert _read(".mcp.json") == MCP
    assert not path.is_symlink() or path.readlink() == Path(MCP_JSON)


def test_versions_are_those_of_the_project() -> None:
    servers = [SERVER["version"], SERVER["packages"][0]["version"]]
    versions = [*servers, MANIFEST["version"], PLUGIN["version"]]
    assert versions == [PROJECT["version"]] * 4


def test_server_json_has_what_the_registry_demands() -> None:
    schema = (
        r"https://static\.modelcontextprotocol\.io/schemas/\d{4}-\d\d-\d\d/server\.schema\.json"
    )
    assert re.fullmatch(schema, SERVER["$schema"])
    assert re.fullmatch(r"io\.github\.[A-Za-z0-9-]+/[A-Za-z0-9._-]+", SERVER["name"])
    assert 1 <= len(SERVER["description"]) <= 100
    assert 1 <= len(SERVER["title"]) <= 100
    assert re.fullmatch(r"\d+\.\d+\.\d+", SERVER["version"])  # no range, and not "latest"
    assert SERVER.keys() <= {
        *("$schema", "name", "title", "description", "version", "packages"),
        *("repository", "websiteUrl", "icons", "remotes", "_meta"),
    }


def test_server_json_starts_the_package_over_stdio() -> None:
    (package,) = SERVER["packages"]
    assert {"registryType", "identifier", "transport"} <= package.keys()
    assert (package["registryType"], package["identifier"]) == ("pypi", PROJECT["name"])
    assert package["transport"] == {"type": "stdio"}
    assert package["runtimeHint"] == "uvx"
    arguments = package["packageArguments"]
    assert [argument["value"] for argument in arguments] == ["serve"]
    assert all(argument["type"] in ("positional", "named") for argument in arguments)


def test_server_json_names_only_variables_that_kopt_reads() -> None:
    from kopt.config.passed_environment import SERVER_VARIABLES

    (package,) = SERVER["packages"]
    for variable in package["environmentVariables"]:
        assert variable["name"] in SERVER_VARIABLES
        assert variable["format"] in ("string", "number", "boolean", "filepath")
        assert variable["description"]


def test_the_manifest_has_what_the_bundle_format_demands() -> None:
    assert MANIFEST["manifest_version"] == "0.4"
    assert {"name", "version", "description", "author", "server"} <= MANIFEST.keys()
    assert MANIFEST.keys() <= {
        *("manifest_version", "name", "display_name", "version", "description"),
        *("long_description", "author", "repository", "homepage", "documentation", "support"),
        *("icon", "icons", "server", "tools", "tools_generated", "prompts", "prompts_generated"),
        *("keywords", "license", "privacy_policies", "compatibility", "user_config", "_meta"),
    }
    assert MANIFEST["author"].keys() <= {"name", "email", "url"} and MANIFEST["author"]["name"]
    for key in MANIFEST.keys() & {"homepage", "documentation", "support"}:
        assert urlsplit(str(MANIFEST[key])).scheme == "https"
    assert MANIFEST["server"].keys() == {"type", "entry_point", "mcp_config"}
    assert MANIFEST["server"]["mcp_config"].keys() <= {"command", "args", "env"}
    assert set(MANIFEST["compatibility"]["platforms"]) <= {"darwin", "win32", "linux"}
    for option in MANIFEST["user_config"].values():
        assert {"type", "title", "description"} <= option.keys()
        assert option["type"] in ("string", "number", "boolean", "directory", "file")


def test_the_manifest_starts_this_project_with_uv() -> None:
    server = MANIFEST["server"]
    config = server["mcp_config"]
    assert (server["type"], config["command"], config["args"][0]) == ("uv", "uv", "run")
    assert (ROOT / server["entry_point"]).is_file()
    extra = config["args"][config["args"].index("--extra") + 1]
    assert extra in PROJECT["optional-dependencies"]
    assert MANIFEST["compatibility"]["runtimes"]["python"] == PROJECT["requires-python"]
    assert (MANIFEST["name"], MANIFEST["license"]) == (PROJECT["name"], PROJECT["license"])


def test_the_manifest_hands_serve_only_options_that_it_takes(tmp_path: Path) -> None:
    words = MANIFEST["server"]["mcp_config"]["args"]
    start = words.index("kopt")
    used = {name for word in words for name in re.findall(r"\$\{user_config\.(\w+)\}", word)}
    assert used == MANIFEST["user_config"].keys()
    assert words[start + 1] == "serve"
    given = [re.sub(r"\$\{user_config\.\w+\}", str(tmp_path), word) for word in words[start + 2 :]]
    with serve.make_context("kopt serve", given) as context:
        assert context.params["workspaces"] == (tmp_path,)


def test_the_manifest_lists_the_tools_that_are_served() -> None:
    assert [tool["name"] for tool in MANIFEST["tools"]] == [spec.name for spec in TOOLS]
    assert all(tool.keys() == {"name", "description"} for tool in MANIFEST["tools"])


def test_the_bundle_holds_every_folder_of_the_package() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8").replace("\\\n", " ")
    bundled = re.search(r"^bundled := (.*)$", makefile, re.MULTILINE)
    assert bundled is not None
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    needed = {"pyproject.toml", PROJECT["readme"], *PROJECT["license-files"], "__init__.py"}
    assert packages | needed <= set(bundled[1].split())


def test_the_marketplace_has_the_one_plugin_that_holds_the_skill() -> None:
    (entry,) = MARKETPLACE["plugins"]
    folder = ROOT / entry["source"]
    assert entry["source"].startswith("./")
    assert (folder / ".claude-plugin" / "plugin.json").samefile(
        ROOT / "server/plugin/.claude-plugin/plugin.json"
    )
    assert (entry["name"], entry["description"]) == (PLUGIN["name"], PLUGIN["description"])
    skills = [path.parent.name for path in (folder / "skills").glob("*/SKILL.md")]
    assert skills == [SKILL]


def test_the_plugin_starts_the_command_that_is_installed() -> None:
    assert PLUGIN["mcpServers"] == {"kopt": {"command": "kopt", "args": ["serve"]}}
    assert "kopt" in PROJECT["scripts"] and "serve" in COMMANDS
    assert PLUGIN["license"] == PROJECT["license"]


def test_a_source_distribution_holds_the_plugin() -> None:
    named = (ROOT / "MANIFEST.in").read_text("utf-8").split()
    assert {
        ".claude-plugin/marketplace.json",
        "server/plugin/.claude-plugin/plugin.json",
    } <= set(named)
