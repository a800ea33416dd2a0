"""One gateway on Telegram, Slack and Discord: what fails on two of them never touches the third."""

from __future__ import annotations

from pathlib import Path

from tests.drills.platforms import Discord, Place, Platform, Slack, Telegram, serving, settings
from tests.end_to_end.house import House, until


def answers(platform: Platform, place: Place) -> list[str]:
    return [text for text in platform.texts(place) if not text.startswith("Waiting:")]


async def answered(platform: Platform, place: Place, *texts: str) -> None:
    await until(lambda: answers(platform, place) == list(texts))


async def test_telegram_keeps_its_pace_while_slack_is_gone_and_discord_refuses_every_call(
    tmp_path: Path,
) -> None:
    telegram, slack, discord = Telegram(3, 1), Slack(1, 1), Discord(1, 1)
    platform: Platform
    platforms: list[Platform] = [telegram, slack, discord]
    house = House(tmp_path, LANEWAY_MAX_TURNS="2")
    house.fake = telegram.fake
    async with serving(platforms):
        await house.start_gateway(**settings(platforms))
        try:
            await until(lambda: all(platform.connected for platform in platforms))
            for platform in platforms:
                platform.say(platform.places[0], "/say well")
            for platform in platforms:
                await answered(platform, platform.places[0], "well")

            await slack.fake.stop()
            discord.fake.fail("*", ".", 429, times=0, retry_after=1.0)
            await until(lambda: any("slack" in why for why in house.running.reasons()))
            for platform in (slack, discord):
                for place in platform.places:
                    platform.say(place, "/say late")
            sent = len(telegram.fake.called("sendMessage"))
            for number in range(3):
                for place in telegram.places:
                    before = answers(telegram, place)
                    telegram.say(place, f"/say {number}")
                    await answered(telegram, place, *before, str(number))
            # Each with one call, at once: nothing was tried again, nothing stood in a line.
            assert len(telegram.fake.called("sendMessage")) == sent + 12
            assert not any("Waiting" in text for text in telegram.everything())
            assert all("late" not in text for text in discord.everything())

            discord.fake.heal()
            await slack.fake.start(slack.fake.port)
            for platform in (slack, discord):
                direct, thread = platform.places
                await answered(platform, direct, "well", "late")
                await answered(platform, thread, "late")
            assert not house.running.reasons()
        finally:
            await house.stop_gateway()
