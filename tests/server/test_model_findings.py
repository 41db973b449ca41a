"""What `kopt doctor` says about models: whether there is a key, and how old the prices are."""

from pathlib import Path

from kopt.config.claude_access import ClaudeAccess
from kopt.config.settings import Settings
from kopt.server.model_findings import model_findings
from kopt.server.views.doctor_view import Finding

KEY = "sk-made-up-key-0123456789"


def found(settings: Settings, name: str) -> Finding:
    """Return the finding called `name`; none of them is required."""
    findings = {one.name: one for one in model_findings(settings)}
    assert not any(one.is_required for one in findings.values())
    return findings[name]


def test_without_a_key_is_said_what_a_run_does_then(tmp_path: Path) -> None:
    claude = found(Settings(home=tmp_path), "Claude")
    assert not claude.is_present
    assert "ANTHROPIC_API_KEY is not set" in claude.detail and "tune" in claude.detail


def test_key_or_token_is_said_to_be_there_and_not_shown(tmp_path: Path) -> None:
    for access in (ClaudeAccess(api_key=KEY), ClaudeAccess(auth_token=KEY)):
        claude = found(Settings(home=tmp_path, claude=access), "Claude")
        variable = "ANTHROPIC_API_KEY" if access.api_key else "ANTHROPIC_AUTH_TOKEN"
        assert claude.is_present
        assert claude.detail.startswith(variable) and KEY not in claude.detail


def test_prices_are_told_with_their_date_and_where_to_write_others(tmp_path: Path) -> None:
    prices = found(Settings(home=tmp_path), "prices of models")
    assert prices.is_present
    assert "seen 2026-11;" in prices.detail
    assert str(tmp_path / "prices.yaml") in prices.detail


def test_own_prices_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text("models: 1")
    prices = found(Settings(home=tmp_path), "prices of models")
    assert not prices.is_present
    assert "prices.yaml: models" in prices.detail
