"""Agents as they are out there: huge lines, endless error output, ways to fail."""

import json
import os
import re
from pathlib import Path

import pytest

from tests.end_to_end.house import House
from tests.end_to_end.looking import sends, turns
from tests.fakes.telegram import ANA, TOKEN

LANE = f"telegram:{ANA}"


async def test_output_lines_of_any_length_end_neither_reader_nor_turn(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        sizes = (65_535, 65_536, 65_537, 1_000_000, 20_000_000)
        house.fake.user_says("\n".join(f"/line {size}" for size in sizes) + "\n/say result")
        over = await house.answered(LANE)
        assert (over["status"], over["answer"]) == ("done", "result")
        assert house.fake.texts(ANA) == ["result"]


async def test_error_output_is_read_kept_in_bounds_and_never_posted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with House(tmp_path) as house:
        await house.stop_gateway()
        command = house_command(house, "--stderr-start 2000000")
        await house.start_gateway(LANEWAY_ACP_COMMAND=command)
        house.fake.user_says("/say one\n/stderr 2000000\n/say  two\n/stderr 2000000\n/say  three")
        over = await house.answered(LANE)
        assert over["status"] == "done"
        assert house.fake.texts(ANA) == ["one two three"]
        assert caplog.text.count("eeee") * 4 < 200_000


def house_command(house: House, more: str) -> str:
    """The scripted agent with further options."""
    from tests.end_to_end.house import environment

    return f"{environment(house.home, None)['LANEWAY_ACP_COMMAND']} {more}"


async def test_an_agent_that_fails_after_much_error_output_shows_none_of_it(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("/say half\n/stderr 300000\n/crash 3")
        over = await house.answered(LANE)
        assert over["status"] == "failed"
        shown = " ".join(house.fake.texts(ANA))
        assert "half" in shown
        assert "eeeeeeee" not in shown
        assert len(sends(house.fake)) == 1
        house.fake.user_says("/say works")
        await house.fake.until(lambda: house.fake.texts(ANA)[-1] == "works")


async def test_lines_that_are_no_protocol_and_messages_nobody_knows_are_passed_over(
    tmp_path: Path,
) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("/badline\n/unknown\n/say fine")
        over = await house.answered(LANE)
        assert (over["status"], over["answer"]) == ("done", "fine")


async def test_an_agent_gets_no_variables_of_the_gateway_or_of_another_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "LANEWAY_TELEGRAM_TOKEN", "AWS_SECRET"):
        monkeypatch.setenv(name, TOKEN)
    monkeypatch.setenv("MY_AGENT_KEY", "handed on")
    async with House(tmp_path, LANEWAY_ENGINE_ENV="MY_AGENT_KEY") as house:
        house.fake.user_says("//env")
        names = json.loads(str((await house.answered(LANE))["answer"]))
        assert {"HOME", "PATH", "MY_AGENT_KEY"} & set(os.environ) <= set(names)
        kept = [name for name in names if re.match("CLAUDE|LANEWAY_.*(TOKEN|KEY)|AWS", name)]
        assert kept == []
        house.fake.user_says("/env MY_AGENT_KEY")
        assert (await house.answered(LANE, 2))["answer"] == "handed on"


async def test_every_way_of_an_agent_to_fail_is_told_and_frees_its_lane(tmp_path: Path) -> None:
    ways = ("/crash", "/kill", "/halfline", "/error out of memory", "/stop-reason max_tokens")
    async with House(tmp_path) as house:
        for number, way in enumerate(ways, 1):
            house.fake.user_says(f"/say half\n{way}")
            over = await house.answered(LANE, number)
            assert over["status"] == "failed", way
            assert "half" in house.fake.texts(ANA)[-1]
            assert "failed" in house.fake.texts(ANA)[-1]
        assert len(sends(house.fake)) == len(ways)
        house.fake.user_says("/say works")
        await house.answered(LANE, len(ways) + 1)
        assert house.fake.texts(ANA)[-1] == "works"


@pytest.mark.parametrize("option", ["--refuse-new 'no seat'", "--version 99"], ids=str)
async def test_an_agent_that_does_not_start_is_told_once(tmp_path: Path, option: str) -> None:
    async with House(tmp_path) as house:
        await house.stop_gateway()
        await house.start_gateway(LANEWAY_ACP_COMMAND=house_command(house, option))
        house.fake.user_says("/say hello")
        over = await house.answered(LANE)
        assert over["status"] == "failed"
        assert len(await turns(house)) == 1
        assert len(house.fake.texts(ANA)) == 1


async def test_an_agent_that_dies_at_its_start_is_tried_again_and_then_told(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        await house.stop_gateway()
        await house.start_gateway(LANEWAY_ACP_COMMAND=house_command(house, "--crash-start 5"))
        house.fake.user_says("/say hello")
        over = await house.answered(LANE)
        assert over["status"] == "failed"
        assert "run again" in house.fake.texts(ANA)[-1]
        assert house.fake.buttons(house.fake.shown(ANA)[-1])
        assert len(house.fake.texts(ANA)) == 1


async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    async with House(tmp_path, LANEWAY_ACP_COMMAND="/nowhere/agent --acp") as house:
        house.fake.user_says("hello")
        assert (await house.answered(LANE))["status"] == "failed"
        assert "/nowhere/agent" in house.fake.texts(ANA)[-1]
