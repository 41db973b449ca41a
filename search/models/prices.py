"""Prices of calls: the dated table config/prices.yaml, with the user's own over it.

Amounts are whole micro-USD, rounded up. A price in USD per million tokens is one in micro-USD per
token. An amount is computed from tokens and this table, but for the cost of a call that a client
made and reports, and for one whose client reports none: that has no amount. What is billed is not
known here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, ValidationError, model_validator

from kopt.config.errors import SetupError
from kopt.config.providers import cost_kind, own_name
from kopt.kernels import strict_yaml
from kopt.kernels.record import Record

from .model import ModelReply, Usage
from .prompt_bound import PromptBound

FILE_NAME = "prices.yaml"

Usd = Annotated[Decimal, Field(ge=0, le=100_000, allow_inf_nan=False)]


class PriceBand(Record):
    """Prices of prompts up to one size, USD per million tokens."""

    prompt_up_to: int | None = Field(default=None, gt=0)
    """Largest prompt in tokens; None: any."""
    input: Usd
    output: Usd
    cache_write_5m: Usd
    cache_write_1h: Usd
    cache_read: Usd

    def cost(self, usage: Usage) -> Decimal:
        """Return what a call costs, micro-USD."""
        return (
            self.input * usage.input_tokens
            + self.cache_write_5m * usage.cache_write_5m_tokens
            + self.cache_write_1h * usage.cache_write_1h_tokens
            + self.cache_read * usage.cache_read_tokens
            + self.output * usage.output_tokens
        )

    def worst_case(self, prompt: PromptBound, output_tokens: int) -> Decimal:
        """Return the most that a call in this band can cost, micro-USD."""
        size = prompt.tokens if self.prompt_up_to is None else self.prompt_up_to
        other_price = max(self.input, self.cache_write_5m, self.cache_read)
        hour_price = max(other_price, self.cache_write_1h)
        hour = min(prompt.hour_tokens, size)
        other = min(prompt.other_tokens, size - hour)
        return hour_price * hour + other_price * other + self.output * output_tokens


class ModelPrice(Record):
    """The prices of one model."""

    dated: str = Field(pattern=r"^20[0-9]{2}-[01][0-9](-[0-3][0-9])?$")
    """When they were seen; shown with every amount."""
    source: str
    bands: tuple[PriceBand, ...] = Field(min_length=1)
    """By size of the prompt, smallest first."""

    @model_validator(mode="after")
    def _bands_ascend(self) -> Self:
        limits = [band.prompt_up_to for band in self.bands]
        inner = [limit for limit in limits[:-1] if limit is not None]
        if limits[-1] is not None or len(inner) != len(limits) - 1 or inner != sorted(set(inner)):
            raise ValueError("prompt_up_to must ascend and be missing in the last band alone")
        return self

    def reachable(self, prompt_tokens: int) -> Iterator[PriceBand]:
        """Yield the bands of all prompts up to this size."""
        for band in self.bands:
            yield band
            if band.prompt_up_to is not None and prompt_tokens <= band.prompt_up_to:
                return


@dataclass(frozen=True)
class PriceTable:
    """The prices that are known here."""

    models: Mapping[str, ModelPrice]
    own_file: Path
    """File that the user may add prices to."""

    def price(self, model: str) -> ModelPrice:
        """Return the prices of `model`.

        Raises:
            SetupError: There are none; the message says where to write them.
        """
        own = own_name(model)
        if own not in self.models:
            raise SetupError(
                f"the price of {own} is not known (known: {', '.join(sorted(self.models))}):"
                f" write it to {self.own_file}, in the form of config/prices.yaml"
            )
        return self.models[own]

    def refuse_unpriced(self, model: str) -> None:
        """Refuse a model whose calls have a cost that could not be set aside before they are made.

        Raises:
            SetupError: Its price is not known.
        """
        if cost_kind(model) != "unavailable":
            self.price(model)

    def of_reply(self, model: str, reply: ModelReply) -> int | None:
        """Return the cost of an answered call of `model`, 1e-6 USD; None where it is not known.

        Raises:
            SetupError: It is to be computed, and the price is not known.
        """
        match cost_kind(model):
            case "unavailable":
                return None
            case "reported" if reply.reported_usd is not None:
                return _whole(Decimal(str(reply.reported_usd)) * 1_000_000)
            case _:
                return self.cost_microusd(model, reply.usage)

    def cost_microusd(self, model: str, usage: Usage) -> int:
        """Return what a call of `model` costs, 1e-6 USD.

        Raises:
            SetupError: Its price is not known.
        """
        *_, band = self.price(model).reachable(usage.prompt_tokens)
        return _whole(band.cost(usage))

    def worst_case_microusd(self, model: str, prompt: PromptBound, max_output_tokens: int) -> int:
        """Return the most that a call of `model` can cost, 1e-6 USD; 0 where no cost is ever known.

        Raises:
            SetupError: Its price is not known.
        """
        kind = cost_kind(model)
        if kind == "unavailable":
            return 0
        if kind == "reported":  # a client may cache all of a prompt for an hour
            prompt = PromptBound(prompt.tokens, 0)
        bands = self.price(model).reachable(prompt.tokens)
        return _whole(max(band.worst_case(prompt, max_output_tokens) for band in bands))


def load_prices(home: Path) -> PriceTable:
    """Return the packaged prices, with those in `home`/prices.yaml in their place.

    Raises:
        SetupError: The user's file cannot be read or is not of the form; the message says where.
    """
    packaged = files("kopt.config").joinpath(FILE_NAME).read_text("utf-8")
    models = _parse(packaged, FILE_NAME)
    own_file = home / FILE_NAME
    try:
        own = own_file.read_text("utf-8")
    except FileNotFoundError:
        return PriceTable(models, own_file)
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"cannot read the prices in {own_file}: {error}") from error
    return PriceTable(models | _parse(own, str(own_file)), own_file)


class _PriceFile(Record):
    models: dict[str, ModelPrice]


def _parse(text: str, name: str) -> dict[str, ModelPrice]:
    try:
        tree = _plain(strict_yaml.load_yaml(text))
    except strict_yaml.YamlError as error:
        raise SetupError(f"{name}, line {error.line}: {error}") from error
    try:
        return _PriceFile.model_validate(tree).models
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise SetupError(f"{name}: {place}: {first['msg']}") from error


def _plain(node: strict_yaml.Node) -> object:
    if isinstance(node, strict_yaml.Mapping):
        return {key: _plain(value) for key, value in node.entries.items()}
    if isinstance(node, strict_yaml.Sequence):
        return [_plain(item) for item in node.items]
    # The text and not the float: a price of 0.1 is a tenth.
    return node.text if isinstance(node.value, float) else node.value


def _whole(amount: Decimal) -> int:
    return int(amount.to_integral_value(rounding=ROUND_CEILING))
