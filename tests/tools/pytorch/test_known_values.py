"""Numbers that constructors read from tensors, where tensors are fake."""

import importlib
from collections.abc import Callable
from typing import Any

import pytest
import torch

from kopt.tools.pytorch.importing.fake_run import fake_run
from kopt.tools.pytorch.importing.known_values import known_values

_FAKE: Any = importlib.import_module("torch._subclasses.fake_tensor")


def _read(make: Callable[[], torch.Tensor]) -> list[Any]:
    with _FAKE.FakeTensorMode(allow_non_fake_inputs=True), known_values():
        made = make()
        assert isinstance(made, _FAKE.FakeTensor)
        return [one.item() for one in made.reshape(-1)]


def _windows() -> torch.Tensor:
    image = torch.zeros(4, 4)
    for number, rows in enumerate((slice(0, 2), slice(2, None))):
        image[rows, :] = number
    return image.view(2, 2, 4).sum(2)


def _masked() -> torch.Tensor:
    apart = torch.tensor([0, 0, 1]).unsqueeze(0) - torch.tensor([0, 1, 1]).unsqueeze(1)
    return apart.masked_fill(apart != 0, -100)


@pytest.mark.parametrize("make", [lambda: torch.linspace(0.0, 0.1, 5), _windows, _masked])
def test_what_follows_from_numbers_is_read_as_it_is(make: Callable[[], torch.Tensor]) -> None:
    assert _read(make) == [one.item() for one in make().reshape(-1)]


def _written_over() -> torch.Tensor:
    table = torch.arange(8.0)
    table[:4].uniform_()
    return table


def _copied_over() -> torch.Tensor:
    table = torch.arange(8)
    table.copy_(torch.randint(0, 4, (8,)))
    return table


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.rand(4),
        lambda: torch.empty(4),
        lambda: torch.ones(1 << 20).cumsum(0)[:4],
        _written_over,
        _copied_over,
    ],
)
def test_what_is_drawn_unwritten_or_large_has_no_value(make: Callable[[], torch.Tensor]) -> None:
    with pytest.raises(_FAKE.DataDependentOutputException):
        _read(make)


def test_a_comparison_of_known_tensors_has_its_answer() -> None:
    with _FAKE.FakeTensorMode(allow_non_fake_inputs=True), known_values():
        assert torch.equal(torch.arange(3), torch.tensor([0, 1, 2]))
        assert not torch.equal(torch.arange(3), torch.tensor([0, 1, 3]))


def test_a_network_whose_rates_are_read_from_a_tensor_is_run() -> None:
    class Stack(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            rates = [one.item() for one in torch.linspace(0.0, 0.5, 3)]
            self.rates = [rate for rate in rates if rate > 0.1]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for rate in self.rates:
                x = x * rate
            return x

    def build(_: object) -> tuple[Any, tuple[Any, ...]]:
        return Stack(), (torch.rand(4, 4),)

    run = fake_run(build, {})
    assert run.operators == (("aten.mul.Tensor", (0.25,)), ("aten.mul.Tensor", (0.5,)))
