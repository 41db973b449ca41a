"""Small shapes: which integers of a source are made smaller, and which relations stay."""

from pathlib import Path

import pytest

from kopt.tools.pytorch.importing.fake_run import fake_run
from kopt.tools.pytorch.importing.request import ExportRequest
from kopt.tools.pytorch.importing.shrinking import TARGET, shrink
from kopt.tools.pytorch.importing.user_source import load_function
from support.quick_cases import first_quick
from support.torch_sources import HEAD

WIDE_INSIDE = """class Model(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        self.conv = nn.Conv2d(3, 96, 11, stride=4)
        self.up = nn.Linear(96 * 7 * 7, 2048)
        self.down = nn.Linear(2048, classes)

    def forward(self, x):
        x = F.adaptive_avg_pool2d(F.relu(self.conv(x)), (7, 7)).flatten(1)
        return self.down(F.relu(self.up(x)))

batch = 64

def get_inputs():
    return [torch.rand(batch, 3, 91, 91)]
"""

TWICE = """class Model(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        self.up = nn.ConvTranspose1d(channels, channels, 4, stride=2, padding=1)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(self.up(x))

batch = 512
channels = 40
length = 96
doubled = 192

def get_inputs():
    return [torch.rand(batch, channels, length)]

def get_init_inputs():
    return [channels, doubled]
"""

GROUPS = """class Model(nn.Module):
    def __init__(self, wide, groups):
        super().__init__()
        self.fc, self.norm = nn.Linear(wide, wide), nn.GroupNorm(groups, wide)

    def forward(self, x):
        return self.norm(self.fc(x))

batch = 256
wide, groups = 2048, 128

def get_inputs():
    return [torch.rand(batch, wide)]

def get_init_inputs():
    return [wide, groups]
"""

ATTENTION = """def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)

batch, heads, length = 32, 16, 256
width = 48

def get_inputs():
    return [torch.randn(batch, heads, length, width) for _ in range(3)]
"""


def _changed(tmp_path: Path, text: str) -> dict[str, int]:
    """Return the smaller integers; at them the function is small enough for a check."""
    source = tmp_path / "model.py"
    source.write_text(HEAD + text, "utf-8")
    function = load_function(ExportRequest(source=str(source)))
    official = fake_run(function.build, {})
    changed = shrink(function, official)
    assert official.work > 10 * TARGET
    assert fake_run(function.build, changed).work < 2 * TARGET
    return changed


def test_widths_within_a_class_are_made_smaller_and_kernel_sizes_are_not(tmp_path: Path) -> None:
    changed = _changed(tmp_path, WIDE_INSIDE)
    function = load_function(ExportRequest(source=str(tmp_path / "model.py")))
    before = {function.integers[name] for name in changed if name in function.inner}
    assert {96, 2048} <= before
    assert 11 not in function.integers.values()


def test_a_size_that_is_twice_another_stays_so(tmp_path: Path) -> None:
    changed = _changed(tmp_path, TWICE)
    assert changed["doubled"] == 2 * changed["length"]


def test_a_group_of_a_norm_keeps_some_of_its_elements(tmp_path: Path) -> None:
    changed = _changed(tmp_path, GROUPS)
    assert changed["wide"] // changed["groups"] >= 4


@pytest.mark.parametrize("scaled", first_quick(["x * 30", "x / 48", "torch.clamp(x, -1, 30)"], 1))
def test_a_number_that_a_class_computes_with_is_no_width(scaled: str, tmp_path: Path) -> None:
    text = WIDE_INSIDE.replace("self.down(F.relu(self.up(x)))", f"self.down({scaled})")
    text = text.replace("flatten(1)", "flatten(1)\n        x = self.up(x)")
    changed = _changed(tmp_path, text)
    function = load_function(ExportRequest(source=str(tmp_path / "model.py")))
    assert {function.integers[name] for name in changed}.isdisjoint({30, 48})
    assert 2048 in {function.integers[name] for name in changed}


@pytest.mark.parametrize("call", ["(q, k, v)", "(q, k, v, is_causal=True)"])
def test_a_size_that_scales_the_scores_of_attention_stays(call: str, tmp_path: Path) -> None:
    changed = _changed(tmp_path, ATTENTION.replace("(q, k, v)\n", f"{call}\n"))
    assert "width" not in changed
    assert len(changed) == 3
