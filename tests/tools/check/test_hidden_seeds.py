"""Hidden seeds: repeatable, secret, different per home."""

import stat
from pathlib import Path

from kopt.config.settings import Settings
from kopt.tools.check.hidden_seeds import POOL_SIZE, draw_hidden_seeds


def test_the_same_binary_gets_the_same_seeds(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    assert draw_hidden_seeds("a", 2, settings) == draw_hidden_seeds("a", 2, settings)


def test_binaries_draw_different_seeds_from_one_small_pool(tmp_path: Path) -> None:
    draws = [draw_hidden_seeds(str(n), 2, Settings(home=tmp_path)) for n in range(40)]
    assert len(set(draws)) > 4
    assert len({seed for draw in draws for seed in draw}) == POOL_SIZE


def test_another_home_has_other_seeds(tmp_path: Path) -> None:
    homes = [Settings(home=tmp_path / name) for name in ("a", "b")]
    pools = [set(draw_hidden_seeds("x", POOL_SIZE, home)) for home in homes]
    assert not pools[0] & pools[1]


def test_the_secret_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    draw_hidden_seeds("x", 1, Settings(home=tmp_path))
    (secret,) = (tmp_path / "secrets").iterdir()
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert stat.S_IMODE(secret.parent.stat().st_mode) == 0o700


def test_a_cut_secret_is_replaced(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    before = draw_hidden_seeds("x", 2, settings)
    (secret,) = (tmp_path / "secrets").iterdir()
    secret.write_bytes(b"short")
    after = draw_hidden_seeds("x", 2, settings)
    assert before != after
    assert draw_hidden_seeds("x", 2, settings) == after


def test_second_draw_of_a_binary_has_none_of_the_first(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    first, second = (draw_hidden_seeds("x", 2, settings, skipped) for skipped in (0, 2))
    assert len({*first, *second}) == 4
