"""What `kopt doctor` says about models for `kopt run`. Neither is needed, and nobody is asked."""

from collections.abc import Iterator

from kopt.config.errors import SetupError
from kopt.config.settings import Settings
from kopt.search.models.prices import load_prices
from kopt.server.views.doctor_view import Finding


def model_findings(settings: Settings) -> Iterator[Finding]:
    """Yield the key of Claude and the table of prices."""
    yield _claude(settings)
    yield _prices(settings)


def _claude(settings: Settings) -> Finding:
    if settings.claude is None:
        said = "ANTHROPIC_API_KEY is not set: kopt run sweeps declared tune values and writes none"
        return Finding("Claude", False, False, said)
    name = "ANTHROPIC_API_KEY" if settings.claude.api_key else "ANTHROPIC_AUTH_TOKEN"
    return Finding("Claude", True, False, f"{name} is set: kopt run has Claude write kernels")


def _prices(settings: Settings) -> Finding:
    try:
        table = load_prices(settings.home)
    except SetupError as error:
        return Finding("prices of models", False, False, str(error))
    dates = sorted({price.dated for price in table.models.values()})
    seen = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    said = f"of {len(table.models)} models, seen {seen}; your own go to {table.own_file}"
    return Finding("prices of models", True, False, said)
