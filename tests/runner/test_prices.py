"""A turn's cost: told by its engine, or reckoned from the table of prices, or not known."""

from __future__ import annotations

from pathlib import Path

import pytest

from core import prices
from core.engines.base import Finished, Started, Text, Usage
from core.prices import BadPrices, Price, PriceList, Prices
from core.turns import Result
from tests.runner.scene import Scene

ENGINES = {"openai", "codex"}
TABLE = """
[openai]
"small-1" = { in = 0.25, out = 2 }
"small-*" = { in = 1, out = 1 }
"small-big-*" = { in = 9, out = 9.5 }
"local*" = { in = 0, out = 0 }
"odd[1]*" = { in = 3, out = 3 }

[codex]
"*" = { in = 4, out = 5 }
"""


@pytest.fixture
def table() -> Prices:
    return prices.read(TABLE, ENGINES)


@pytest.mark.parametrize(
    ("engine", "model", "price"),
    [
        ("openai", "small-1", Price(0.25, 2)),
        ("openai", "small-2", Price(1, 1)),
        ("openai", "small-big-3", Price(9, 9.5)),
        ("openai", "local/llama", Price(0, 0)),
        ("openai", "odd[1]x", Price(3, 3)),
        ("openai", "odd1x", None),
        ("openai", "large", None),
        ("openai", "", None),
        ("codex", "", Price(4, 5)),
        ("claude", "small-1", None),
    ],
)
def test_the_own_price_counts_before_the_longest_pattern(
    table: Prices, engine: str, model: str, price: Price | None
) -> None:
    assert table.of(engine, model) == price


def test_a_cost_is_reckoned_for_a_million_tokens(table: Prices) -> None:
    usage = Usage(2_000_000, 500_000)
    assert table.priced("openai", "small-1", usage) == Usage(2_000_000, 500_000, 1.5)
    assert table.priced("openai", "local/x", usage).cost == 0


def test_what_an_engine_told_is_not_reckoned_anew(table: Prices) -> None:
    told = Usage(1_000_000, 0, 7.0)
    assert table.priced("openai", "small-1", told) == told


def test_without_a_price_nothing_is_guessed(table: Prices) -> None:
    assert table.priced("openai", "large", Usage(5, 5)).cost is None
    assert Prices().priced("openai", "small-1", Usage(5, 5)).cost is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[openai", "prices.toml"),
        ("[opnai]\nx = { in = 1, out = 1 }", "'opnai' is no engine"),
        ("openai = 3", "'openai' is no engine"),
        ("[openai]\nx = 3", "'x' has no price"),
        ("[openai]\nx = { in = 1 }", "'x' has no price"),
        ("[openai]\nx = { in = 1, out = -1 }", "'x' has no price"),
        ("[openai]\nx = { in = 1, out = nan }", "'x' has no price"),
        ("[openai]\nx = { in = true, out = 1 }", "'x' has no price"),
        ("[openai]\nx = { in = 1, out = 2e6 }", "'x' has no price"),
        ("[openai]\ngpt-5.1 = { in = 1, out = 1 }", "'gpt-5' has no price"),
    ],
)
def test_a_table_that_is_wrong_is_refused_with_the_place(text: str, words: str) -> None:
    with pytest.raises(BadPrices, match=r"prices\.toml") as fault:
        prices.read(text, ENGINES)
    assert words in str(fault.value)


def test_everything_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(BadPrices) as fault:
        prices.read("[a]\n[openai]\nx = 1\ny = 2", ENGINES)
    assert len(fault.value.problems) == 3


def test_no_file_is_an_empty_table(tmp_path: Path) -> None:
    assert len(prices.load(tmp_path, ENGINES)) == 0
    assert prices.problems(tmp_path, ENGINES) == ()


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    (tmp_path / prices.FILE).write_bytes(b"\xff\xfe\xff")
    (problem,) = prices.problems(tmp_path, ENGINES)
    assert "cannot be read" in problem


class Ticking:
    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        self.at += prices.LOOK_EVERY
        return self.at


def test_a_change_counts_without_a_restart(tmp_path: Path) -> None:
    listed = PriceList(tmp_path, ENGINES, Ticking())
    assert len(listed.now) == 0
    (tmp_path / prices.FILE).write_text(TABLE)
    assert len(listed.now) == 6
    (tmp_path / prices.FILE).unlink()
    assert len(listed.now) == 0


def test_a_table_that_was_spoilt_while_it_runs_is_told_and_the_old_one_counts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    listed = PriceList(tmp_path, ENGINES, Ticking())
    (tmp_path / prices.FILE).write_text(TABLE)
    assert len(listed.now) == 6
    (tmp_path / prices.FILE).write_text("[openai]\nx = 1")
    assert len(listed.now) == len(listed.now) == 6
    assert caplog.text.count("the prices stay as they were") == 1


def test_the_file_is_not_looked_at_all_the_time(tmp_path: Path) -> None:
    listed = PriceList(tmp_path, ENGINES, lambda: 5.0)
    assert len(listed.now) == 0
    (tmp_path / prices.FILE).write_text(TABLE)
    assert len(listed.now) == 0


async def test_a_turn_is_stored_with_the_price_of_the_model_it_used(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        table = '[demo]\n"big-*" = { in = 2, out = 10 }\n'
        (scene.settings.home / prices.FILE).write_text(table)
        for number, (model, cost) in enumerate((("big-7", 0.0305), ("small", None)), 1):
            await scene.says("hello")
            run = await scene.engine.started(number)
            run.say(Started("s", model), Usage(9000, 500), Usage(9000, 1250))
            run.say(Text("hi"), Finished(Result.DONE))
            run.end()
            await scene.until(lambda: scene.texts() == ["hi"] * number)  # noqa: B023
            turn = (await scene.turns())[-1]
            assert (turn.tokens_in, turn.tokens_out, turn.cost) == (9000, 1250, cost)
