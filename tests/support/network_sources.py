"""Networks in plain torch, small enough for the simulator."""

MLP = '''"""Two equal blocks and a head."""

import torch
from torch import nn

batch, width, hidden = 64, 96, 160


class Block(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.blocks = nn.ModuleList([Block(width, hidden) for _ in range(2)])
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def get_init_inputs():
    return [width, hidden]


def get_inputs():
    return [torch.randn(batch, width)]
'''
