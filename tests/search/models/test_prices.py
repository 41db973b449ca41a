"""What calls cost by the table of prices, and what is no table of prices."""

from decimal import Decimal
from pathlib import Path

import pytest

from kopt.config.errors import SetupError
from kopt.config.search_settings import ROLES, load_search_settings
from kopt.search.models.model import Usage
from kopt.search.models.prices import PriceTable, load_prices
from kopt.search.models.prompt_bound import PromptBound
from support.model_requests import say

OWN = """
models:
  my-model:
    dated: 2026-11-20
    source: my contract
    bands:
      - {prompt_up_to: 1000, input: 1, output: 2, cache_read: 0, cache_write_5m: 1,
         cache_write_1h: 2}
      - {input: 10, output: 20, cache_write_5m: 11.5, cache_write_1h: 12, cache_read: 0.1}
"""


def packaged() -> PriceTable:
    return load_prices(Path("/nowhere"))


def own(folder: Path, text: str = OWN) -> PriceTable:
    (folder / "prices.yaml").write_text(text)
    return load_prices(folder)


@pytest.mark.parametrize(
    ("usage", "microusd"),
    [
        (Usage(), 0),
        (Usage(input_tokens=1_000_000), 4_000_000),
        (Usage(output_tokens=1_000_000), 20_000_000),
        (Usage(cache_write_5m_tokens=1_000_000), 5_000_000),
        (Usage(cache_write_1h_tokens=1_000_000), 8_000_000),
        (Usage(cache_read_tokens=1_000_000), 200_000),
        (Usage(cache_read_tokens=1), 1),  # a fifth of a millionth, rounded up
    ],
)
def test_every_kind_of_token_has_its_price(usage: Usage, microusd: int) -> None:
    assert packaged().cost_microusd("claude-opus-5-5", usage) == microusd


def test_band_is_told_by_the_whole_prompt_and_holds_for_all_of_it() -> None:
    small = Usage(input_tokens=40_000, cache_read_tokens=60_000, output_tokens=1000)
    large = small.model_copy(update={"cache_write_5m_tokens": 1})
    prices = packaged()
    assert prices.cost_microusd("claude-haiku-5-5", small) == 4000 + 600 + 500
    assert prices.cost_microusd("claude-haiku-5-5", large) == 20_000 + 3000 + 2500 + 1


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-haiku-5-5", "claude-fable-5-1"])
@pytest.mark.parametrize("hour", [0, 5000, 120_000])
@pytest.mark.parametrize("other", [0, 7000, 90_000, 400_000])
def test_no_usage_within_the_bound_costs_more_than_the_worst_case(
    model: str, hour: int, other: int
) -> None:
    prices = packaged()
    worst = prices.worst_case_microusd(model, PromptBound(hour, other), 8000)
    parts = ("input_tokens", "cache_write_5m_tokens", "cache_read_tokens")
    for share in (0.0, 0.3, 1.0):
        for part in parts:
            values = {part: int(other * share), "cache_write_1h_tokens": int(hour * share)}
            usage = Usage.model_validate({**values, "output_tokens": 8000})
            assert prices.cost_microusd(model, usage) <= worst


def test_worst_case_of_a_cheap_band_that_is_never_left_is_its_own() -> None:
    prices = packaged()
    bound = PromptBound(hour_tokens=50_000, other_tokens=50_000)
    assert prices.worst_case_microusd("claude-haiku-5-5", bound, 0) == 10_000 + 6250
    wider = PromptBound(hour_tokens=50_000, other_tokens=50_001)
    assert prices.worst_case_microusd("claude-haiku-5-5", wider, 0) == 50_000 + 31_251


def test_every_role_asks_a_model_whose_price_is_known_and_dated() -> None:
    settings = load_search_settings()
    for role in ROLES:
        assert packaged().price(settings.roles.of(role).model).dated >= "2026-11"


def test_unknown_price_is_an_error_that_says_where_to_write_it(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=rf"claude-next .*write it to {tmp_path}/prices\.yaml"):
        load_prices(tmp_path).cost_microusd("claude-next", Usage())


def test_own_prices_add_to_the_packaged_ones(tmp_path: Path) -> None:
    prices = own(tmp_path)
    assert prices.cost_microusd("my-model", Usage(input_tokens=1000)) == 1000
    assert prices.cost_microusd("my-model", Usage(input_tokens=1001)) == 10_010
    assert prices.price("claude-opus-5-5") == packaged().price("claude-opus-5-5")


def test_own_prices_replace_packaged_ones_and_are_taken_to_the_digit(tmp_path: Path) -> None:
    text = OWN.replace("my-model", "claude-opus-5-5").replace("11.5", "0.1")
    price = own(tmp_path, text).price("claude-opus-5-5")
    assert price.source == "my contract"
    assert price.bands[1].cache_write_5m == Decimal("0.1")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("input: 10,", "input: -10,", "bands.1.input"),
        ("input: 10,", "input: ten,", "bands.1.input"),
        ("input: 10,", "input: .nan,", "bands.1.input"),
        ("input: 10,", "", "bands.1.input: Field required"),
        ("input: 10,", "input: 10, thinking: 3,", "bands.1.thinking"),
        ("prompt_up_to: 1000,", "", "must ascend"),
        ("- {input: 10,", "- {prompt_up_to: 2000, input: 10,", "must ascend"),
        ("prompt_up_to: 1000", "prompt_up_to: 0", "bands.0.prompt_up_to"),
        ("dated: 2026-11-20", "dated: lately", "dated"),
        ("source: my contract", "source: a\n    source: b", "line 6"),
        ("models:", "modells:", "models: Field required"),
        ("models:", "models: &all", "line 2"),
    ],
)
def test_mistake_in_the_own_file_is_told_with_its_place(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert old in OWN
    with pytest.raises(SetupError, match=said) as caught:
        own(tmp_path, OWN.replace(old, new))
    assert str(tmp_path / "prices.yaml") in str(caught.value)


def test_own_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").mkdir()
    with pytest.raises(SetupError, match="cannot read the prices"):
        load_prices(tmp_path)


def test_cost_of_a_reply_is_known_as_its_provider_makes_it_known() -> None:
    prices, reported = packaged(), say(reported_usd=0.0125)
    computed = prices.cost_microusd("claude-opus-5-5", reported.usage)
    assert prices.of_reply("claude-opus-5-5", reported) == computed
    assert prices.of_reply("claude-code:claude-opus-5-5", reported) == 12_500
    assert prices.of_reply("codex:default", reported) is None


def test_all_of_a_prompt_may_be_cached_for_an_hour_by_a_client() -> None:
    prices, prompt = packaged(), PromptBound(1_000, 2_000)
    all_for_an_hour = prices.worst_case_microusd("claude-opus-5-5", PromptBound(3_000, 0), 10)
    asked = prices.worst_case_microusd("claude-code:claude-opus-5-5", prompt, 10)
    assert asked == all_for_an_hour > prices.worst_case_microusd("claude-opus-5-5", prompt, 10)
    assert prices.worst_case_microusd("codex:gpt-6", prompt, 10) == 0


def test_price_is_asked_for_where_a_cost_will_be_known() -> None:
    packaged().refuse_unpriced("codex:gpt-6")
    packaged().refuse_unpriced("claude-code:claude-opus-5-5")
    with pytest.raises(SetupError, match="price of opus is not known"):
        packaged().refuse_unpriced("claude-code:opus")
