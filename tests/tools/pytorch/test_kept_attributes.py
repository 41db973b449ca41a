"""Modules that keep a tensor as a plain attribute and change it in forward, exported."""

import importlib
from typing import Any

import pytest
import torch

from kopt.config.errors import ToolError
from kopt.tools.pytorch.importing.exporting import export_module

pytestmark = pytest.mark.slow  # torch.export: 10 s for the first of a process


class Cell(torch.nn.Module):
    """A recurrent cell whose state is an attribute; `is_given` starts it anew in every call."""

    def __init__(self, is_given: bool) -> None:
        super().__init__()
        self.state = torch.randn(4, 8)
        self.mix = torch.nn.Linear(16, 8)
        self.is_given = is_given

    def forward(self, x: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
        """Return the next state."""
        if self.is_given:
            self.state.copy_(start)
        else:
            self.state.add_(start)
        self.state = torch.tanh(self.mix(torch.cat((x, self.state), 1)))
        return self.state * 2.0


def _inputs() -> tuple[Any, ...]:
    return torch.randn(4, 8), torch.randn(4, 8)


def test_state_that_each_call_starts_anew_is_left_out() -> None:
    cell = Cell(is_given=True)
    before = cell.state
    exported = export_module(cell, _inputs(), ())
    assert {one.name for one in exported.graph.inputs} == {"x", "start", "mix_weight", "mix_bias"}
    assert exported.warnings == ("state is changed in place: left out",)
    assert cell.state is before
    assert not list(cell.buffers())


def test_state_that_the_calls_before_left_is_refused_by_name() -> None:
    with pytest.raises(ToolError, match=r"state is an attribute that forward reads and changes"):
        export_module(Cell(is_given=False), _inputs(), ())


def test_state_that_is_assigned_anew_from_the_one_before_is_refused() -> None:
    class Assigned(Cell):
        def forward(self, x: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
            self.state = torch.tanh(self.mix(torch.cat((x, self.state + start), 1)))
            return self.state * 2.0

    with pytest.raises(ToolError, match=r"state is an attribute that forward reads and changes"):
        export_module(Assigned(is_given=True), _inputs(), ())


def test_an_attribute_that_forward_only_assigns_is_no_input() -> None:
    class Noted(Cell):
        def forward(self, x: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
            self.state = torch.tanh(self.mix(torch.cat((x, start), 1)))
            return self.state * 2.0

    exported = export_module(Noted(is_given=True), _inputs(), ())
    assert {one.name for one in exported.graph.inputs} == {"x", "start", "mix_weight", "mix_bias"}


def test_an_export_that_fails_leaves_attributes_as_they_were() -> None:
    cell = Cell(is_given=False)
    before = cell.state
    with pytest.raises(ToolError):
        export_module(cell, _inputs(), ())
    assert cell.state is before
    assert type(before) is torch.Tensor


def test_state_of_a_part_is_found_by_its_path() -> None:
    class Around(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = Cell(is_given=True)

        def forward(self, x: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
            return torch.sigmoid(self.cell(x, start))

    exported = export_module(Around(), _inputs(), ())
    assert exported.warnings == ("cell.state is changed in place: left out",)


def test_of_fake_tensors_the_attributes_are_named_that_an_export_of_real_ones_found() -> None:
    fake: Any = importlib.import_module("torch._subclasses.fake_tensor").FakeTensorMode
    found = export_module(Cell(is_given=True), _inputs(), ()).changed
    assert found == {"state"}
    with torch.no_grad(), fake(allow_non_fake_inputs=True):
        cell, inputs = Cell(is_given=True), _inputs()
    exported = export_module(cell, inputs, (), changed=found)
    assert exported.warnings == ("state is changed in place: left out",)
