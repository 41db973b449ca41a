"""Small PyTorch files of the kinds that users bring: operators, fused ones, networks."""

HEAD = """import torch
import torch.nn as nn
import torch.nn.functional as F

"""

_RELU = """class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

batch, dim = 4096, 16384

def get_inputs():
    return [torch.randn(batch, dim)]
"""

_MATMUL = """def multiply(a, b):
    return a @ b

M = 2048
K = 4096
N = 1024

def get_inputs():
    return [torch.rand(M, K) - 0.5, torch.rand(K, N) - 0.5]
"""

_SOFTMAX = """class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)

rows = 4096
columns = 32000

def get_inputs():
    return [torch.randn(rows, columns)]
"""

_NORM_GELU = """class Model(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(hidden, dtype=torch.bfloat16)

    def forward(self, x):
        return F.gelu(self.norm(x))

batch = 4096
hidden = 4096

def get_inputs():
    return [torch.randn(batch, hidden, dtype=torch.bfloat16)]

def get_init_inputs():
    return [hidden]
"""

_CONVOLUTION = """class Model(nn.Module):
    def __init__(self, channels, filters, size):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, size)
        self.bias = nn.Parameter(torch.randn(filters, 1, 1))

    def forward(self, x):
        return torch.relu(self.conv(x)) + self.bias

def get_inputs():
    return [torch.rand(128, 64, 130, 128)]

def get_init_inputs():
    return [64, 96, 3]
"""

_CROSS_ENTROPY = """class Model(nn.Module):
    def forward(self, scores, labels):
        return F.cross_entropy(scores, labels)

batch = 16384
classes = 1000

def get_inputs():
    return [torch.randn(batch, classes), torch.randint(0, classes, (batch,))]
"""

_GROUPS = """class Model(nn.Module):
    def __init__(self, inside, outside, groups):
        super().__init__()
        self.gemm = nn.Linear(inside, outside)
        self.norm = nn.GroupNorm(groups, outside)

    def forward(self, x):
        x = self.norm(self.gemm(x))
        return x * torch.sigmoid(x)

batch = 1024
features = 8192

def get_inputs():
    return [torch.randn(batch, features)]

def get_init_inputs():
    return [features, 4096, 16]
"""

_MLP = """class Model(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        layers = []
        for before, after in zip(sizes, sizes[1:]):
            layers += [nn.Linear(before, after), nn.ReLU()]
        self.net = nn.Sequential(*layers[:-1])

    def forward(self, x):
        return self.net(x)

batch = 512

def get_inputs():
    return [torch.rand(batch, 1000)]

def get_init_inputs():
    return [[1000, 2048, 1024, 200]]
"""

_LENET = """class Model(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = torch.flatten(x, 1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))

def get_inputs():
    return [torch.rand(2048, 1, 32, 32)]

def get_init_inputs():
    return [20]
"""

_TRANSFORMER = """class Model(nn.Module):
    def __init__(self, width, heads, longest):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.register_buffer("mask", torch.tril(torch.ones(longest, longest)))

    def forward(self, x):
        B, S, C = x.shape
        q, k, v = self.qkv(self.norm1(x)).split(C, dim=2)
        q, k, v = (t.view(B, S, self.heads, C // self.heads).transpose(1, 2) for t in (q, k, v))
        scores = q @ k.transpose(-2, -1) * 0.125
        scores = scores.masked_fill(self.mask[:S, :S] == 0, float("-inf"))
        y = (torch.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(B, S, C)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.norm2(x))))

batch = 32
length = 256
width = 512

def get_inputs():
    return [torch.randn(batch, length, width)]

def get_init_inputs():
    return [width, 8, 1024]
"""

SOURCES = {
    "relu": HEAD + _RELU,
    "matmul": HEAD + _MATMUL,
    "softmax": HEAD + _SOFTMAX,
    "norm_gelu": HEAD + _NORM_GELU,
    "convolution": HEAD + _CONVOLUTION,
    "cross_entropy": HEAD + _CROSS_ENTROPY,
    "groups": HEAD + _GROUPS,
    "mlp": HEAD + _MLP,
    "lenet": HEAD + _LENET,
    "transformer": HEAD + _TRANSFORMER,
}
