"""A graph called as a torch module gives what the module that it was exported from gives."""

import pytest
import torch
from torch import nn

from kopt.config.errors import ToolError
from kopt.tools.pytorch.graph import Graph
from kopt.tools.pytorch.graph_module import graph_module
from support.exported_graphs import Exported, exported_together

pytestmark = pytest.mark.slow  # torch.export takes ten seconds for the first module of a process


class _Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(16, 48)
        self.norm = nn.LayerNorm(16)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        q, k, v = self.qkv(self.norm(x)).split(16, -1)
        mask = torch.ones(x.shape[1], x.shape[1]).tril() == 0
        scores = (q @ k.transpose(-1, -2)).masked_fill(mask, float("-inf"))
        return scores.softmax(-1).to(torch.float16) @ v.to(torch.float16), q.max(1).indices


def _exported() -> Exported:
    torch.manual_seed(1)  # pyright: ignore[reportUnknownMemberType] # a partial stub
    inputs = [(torch.randn(2, 5, 16),), (torch.randn(3, 9, 16),)]
    return exported_together({"attention": (_Attention(), inputs)})["attention"]


def test_results_dtypes_and_shapes_are_the_modules_own() -> None:
    exported = _exported()
    for number, workload in enumerate(exported.problem.workloads):
        module = graph_module(exported.graph, workload.axes, "cpu")
        found = module(*exported.inputs[number])
        for one, wanted in zip(found, exported.outputs[number], strict=True):
            assert one.dtype == wanted.dtype
            torch.testing.assert_close(one, wanted)


def test_a_foreign_operator_is_called_by_nobody() -> None:
    graph = _exported().graph
    foreign = graph.nodes[0].model_copy(update={"op": "aten.rand.default"})
    changed = Graph.model_validate(
        graph.model_copy(update={"nodes": (foreign, *graph.nodes[1:])}).model_dump()
    )
    with pytest.raises(ToolError, match=r"aten\.rand\.default is no operator"):
        graph_module(changed, {}, "cpu")
