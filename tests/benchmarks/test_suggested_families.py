"""Which kernels are asked for advice that they do not need, and what they claim themselves."""

from suggested_families import subjects

from kopt.kernels.families import FAMILIES


def test_every_shipped_kernel_is_asked_about_once_with_what_it_claims() -> None:
    found = list(subjects())
    assert len({one.name for one in found}) == len(found) >= 28
    assert all(one.claims and one.claims <= set(FAMILIES) for one in found)
