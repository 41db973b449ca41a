"""The protocol's conformance suite against `kopt serve --http`: what needs no tools for testing."""

import re
from collections import defaultdict

import pytest

from support.http_server import HttpServer
from support.real_clients import Clients

SCENARIOS = (
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "dns-rebinding-protection",
    "caching",
    "http-header-validation",
    "sep-2164-resource-not-found",
    "input-required-result-unsupported-methods",
    "input-required-result-ignore-extra-params",
)
SKILLS = {
    "sep-2640-skills-enumeration": 32,
    "sep-2640-skills-manifest": 6,
    "sep-2640-skills-directory": 7,
}
"""The scenarios of the Skills extension, with the number of checks: none may be passed over."""
NEED_SESSIONS = ("server-sse-multiple-streams", "server-session-lifecycle")
NEED_A_TEST_TOOL = {
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
}
_CHECK = re.compile(r"\[([\w-]+) *\] \x1b\[\d+m([A-Z]+) *\x1b")


def _checks(clients: Clients, server: HttpServer, scenario: str) -> dict[str, set[str]]:
    """Run one scenario; return the names of its checks by how they ended."""
    words = ["server", "--url", server.url, "--scenario", scenario]
    ending = clients.run("conformance", *words)
    checks: defaultdict[str, set[str]] = defaultdict(set)
    for name, outcome in _CHECK.findall(ending.stdout):
        checks[outcome].add(name)
    assert (ending.code == 0) == (not checks["FAILURE"]), ending.stdout + ending.stderr
    return checks


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario_passes(clients: Clients, http: HttpServer, scenario: str) -> None:
    checks = _checks(clients, http, scenario)
    assert checks["SUCCESS"]
    assert checks["FAILURE"] | checks["WARNING"] == set()


@pytest.mark.parametrize("scenario", SKILLS)
def test_every_check_of_the_skills_extension_passes(
    clients: Clients, http: HttpServer, scenario: str
) -> None:
    checks = _checks(clients, http, scenario)
    assert len(checks["SUCCESS"]) == SKILLS[scenario]
    assert {outcome for outcome, names in checks.items() if names} == {"SUCCESS"}


def test_requests_stand_alone_but_for_what_only_a_test_tool_shows(
    clients: Clients, http: HttpServer
) -> None:
    checks = _checks(clients, http, "server-stateless")
    assert len(checks["SUCCESS"]) > 20
    assert checks["FAILURE"] == NEED_A_TEST_TOOL


@pytest.mark.parametrize("scenario", NEED_SESSIONS)
def test_server_without_sessions_has_nothing_to_check(
    clients: Clients, http: HttpServer, scenario: str
) -> None:
    checks = _checks(clients, http, scenario)
    assert (checks["SUCCESS"], checks["FAILURE"]) == (set(), set())
    assert checks["INFO"] | checks["WARNING"]
