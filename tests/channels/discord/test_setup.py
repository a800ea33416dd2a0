"""The commands that are offered, and what the doctor finds."""

from __future__ import annotations

from pathlib import Path

import pytest
from discord import Permissions

from channels.discord.setup import FOR_THREADS, NEEDED, check, invite, rights_in
from tests.channels.discord.conftest import Discord, QuickClock, opened_on
from tests.contracts.channel_contract import listening
from tests.fakes.discord import BOT, CHANNEL, FORUM_CHANNEL, GUILD, OUR_ROLE, FakeDiscord

MENU = (("help", "what can be said here"), ("stop", "ends   the running\nturn"), ("Bad Name", "no"))
PUT = ("PUT", "/commands$")


class TestMenu:
    async def test_commands_are_offered_once_each_with_a_text_of_its_own(
        self, discord: Discord
    ) -> None:
        async with listening(discord.channel, discord.intake):
            await discord.channel.menu(MENU)
            await discord.fake.until(lambda: discord.fake.commands)
            await discord.channel.menu(MENU)
        names = [one["name"] for one in discord.fake.commands]
        assert names == ["help", "stop"]
        stop = discord.fake.commands[1]
        assert stop["description"] == "ends the running turn"
        (option,) = stop["options"]
        assert (option["name"], option["type"], option.get("required", False)) == ("text", 3, False)
        assert len(discord.fake.called(*PUT)) == 1

    async def test_what_is_there_already_is_not_set_again(self, discord: Discord) -> None:
        async with listening(discord.channel, discord.intake):
            await discord.channel.menu(MENU)
            await discord.fake.until(lambda: discord.fake.commands)
        again = opened_on(discord.fake, QuickClock())
        async with again, listening(again, discord.intake):
            await again.menu(tuple(reversed(MENU)))
            await discord.fake.until(lambda: len(discord.fake.called("GET", "/commands$")) == 2)
            discord.fake.user_says("marker")
            await discord.fake.until(lambda: discord.intake.messages)
        assert len(discord.fake.called(*PUT)) == 1

    async def test_a_changed_menu_is_set(self, discord: Discord) -> None:
        async with listening(discord.channel, discord.intake):
            await discord.channel.menu(MENU)
            await discord.fake.until(lambda: discord.fake.commands)
            await discord.channel.menu(MENU[:1])
        assert [one["name"] for one in discord.fake.commands] == ["help"]

    async def test_a_menu_wanted_in_an_outage_is_set_after_it(self, discord: Discord) -> None:
        await discord.fake.stop()
        await discord.channel.menu(MENU)
        await discord.fake.start(discord.fake.port)
        async with listening(discord.channel, discord.intake):
            await discord.fake.until(lambda: discord.fake.commands)

    async def test_a_refused_menu_is_said_and_stops_nothing(
        self, discord: Discord, caplog: pytest.LogCaptureFixture
    ) -> None:
        discord.fake.fail(*PUT, 403, 50001, "Missing Access")
        async with listening(discord.channel, discord.intake):
            await discord.channel.menu(MENU)
            await discord.fake.until(lambda: "could not be set" in caplog.text)
            discord.fake.user_says("hi")
            await discord.fake.until(lambda: discord.intake.messages)


async def findings(fake: FakeDiscord, *places: str) -> dict[str, tuple[bool, str, str]]:
    found = await check(fake.token, fake.url, places, True)
    return {name: (well, seen, fix) for name, well, seen, fix in found}


class TestDoctor:
    async def test_all_is_well(self) -> None:
        async with FakeDiscord() as fake:
            found = await findings(fake, CHANNEL, FORUM_CHANNEL)
        assert all(well for well, _, _ in found.values())
        assert found["discord token"][1] == f"gate ({BOT})"
        assert "#lab" in found[f"discord place {CHANNEL}"][1]

    async def test_a_wrong_token_says_where_a_new_one_is(self) -> None:
        async with FakeDiscord() as fake:
            ((name, well, seen, fix),) = await check("wrong", fake.url, (), True)
        assert (name, well) == ("discord token", False)
        assert "refuses" in seen
        assert "Reset Token" in fix
        assert "wrong" not in seen

    async def test_a_missing_intent_says_what_to_click(self) -> None:
        async with FakeDiscord() as fake:
            fake.flags = 0
            found = await findings(fake)
        well, _, fix = found["discord message content"]
        assert not well
        assert "Message Content Intent" in fix

    async def test_missing_rights_are_named_place_by_place(self) -> None:
        async with FakeDiscord() as fake:
            lacking = Permissions(**dict.fromkeys(NEEDED, True)) & ~Permissions(add_reactions=True)
            fake.permissions = str(lacking.value)
            found = await findings(fake, CHANNEL, FORUM_CHANNEL)
        well, seen, fix = found[f"discord place {CHANNEL}"]
        assert not well
        assert "Add Reactions, Create Public Threads" in seen
        assert "Add Reactions" in fix
        assert "Public Threads" not in found[f"discord place {FORUM_CHANNEL}"][1]

    async def test_a_place_that_is_not_shown_says_how_to_get_in(self) -> None:
        async with FakeDiscord() as fake:
            fake.denied.add((CHANNEL, "view"))
            found = await findings(fake, CHANNEL, "900000000000000099")
        for place in (CHANNEL, "900000000000000099"):
            well, seen, fix = found[f"discord place {place}"]
            assert not well
            assert "not shown" in seen
            assert "oauth2/authorize" in fix

    async def test_without_a_server_the_invitation_is_shown(self) -> None:
        async with FakeDiscord() as fake:
            fake.garble("GET", "/guilds$", b"[]")
            found = await findings(fake)
        assert found["discord servers"][2].startswith("open https://discord.com/oauth2/authorize")

    async def test_presses_that_are_sent_elsewhere_are_found(self) -> None:
        async with FakeDiscord() as fake:
            body = b'{"id":"920000000000000001","flags":262144,"interactions_endpoint_url":"https://x.invalid"}'
            fake.garble("GET", "/applications/@me$", body)
            found = await findings(fake)
        assert "Interactions Endpoint URL" in found["discord buttons"][2]

    async def test_what_discord_does_not_say_is_no_fault_of_the_set_up(self) -> None:
        async with FakeDiscord() as fake:
            fake.garble("GET", "/applications/@me$", b'{"id":"920000000000000001"}')
            fake.fail("GET", "/users/@me/guilds$", 404, times=0)
            fake.fail("GET", r"/guilds/\d+$", 404, times=0)
            found = await findings(fake, CHANNEL)
        assert all(well for well, _, _ in found.values()), found
        assert "does not say" in found[f"discord place {CHANNEL}"][1]

    @pytest.mark.parametrize("raw", [b"<html>", b"[]", b'{"id":7}'])
    async def test_odd_answers_are_findings_and_no_crash(self, raw: bytes) -> None:
        async with FakeDiscord() as fake:
            for path in ("/applications/@me$", "/guilds$", "/channels/", "/guilds/"):
                fake.garble("GET", path, raw)
            found = await findings(fake, CHANNEL)
        assert not found["discord application"][0]
        assert not found[f"discord place {CHANNEL}"][0]


class TestRights:
    def rights(self, *rules: dict[str, str], base: Permissions | None = None) -> Permissions:
        everyone = (base or Permissions(view_channel=True)).value
        server = {
            "id": GUILD,
            "owner_id": "1",
            "roles": [
                {"id": GUILD, "permissions": str(everyone)},
                {"id": OUR_ROLE, "permissions": str(Permissions(send_messages=True).value)},
                {"id": "5", "permissions": str(Permissions(administrator=True).value)},
            ],
        }
        channel = {"permission_overwrites": list(rules)}
        return rights_in(channel, server, {"roles": [OUR_ROLE]}, BOT)

    def rule(self, who: str, allow: Permissions, deny: Permissions) -> dict[str, str]:
        return {"id": who, "allow": str(allow.value), "deny": str(deny.value)}

    def test_roles_add_up_and_only_ones_own_count(self) -> None:
        rights = self.rights()
        assert rights.view_channel
        assert rights.send_messages
        assert not rights.administrator

    def test_a_channels_rules_go_from_all_over_roles_to_the_bot_itself(self) -> None:
        nothing, sends = Permissions.none(), Permissions(send_messages=True)
        denied = self.rights(self.rule(GUILD, nothing, sends))
        assert not denied.send_messages
        for who in (OUR_ROLE, BOT):
            allowed = self.rights(self.rule(GUILD, nothing, sends), self.rule(who, sends, nothing))
            assert allowed.send_messages
        last = self.rights(self.rule(OUR_ROLE, sends, nothing), self.rule(BOT, nothing, sends))
        assert not last.send_messages

    def test_an_administrator_may_everything(self) -> None:
        rule = self.rule(BOT, Permissions.none(), Permissions.all())
        assert self.rights(rule, base=Permissions(administrator=True)) == Permissions.all()


def test_the_invitation_asks_for_what_is_needed_and_no_more() -> None:
    wanted = Permissions(int(invite(BOT).rpartition("permissions=")[2]))
    asked = {name for name, given in wanted if given}
    synonyms = {"read_messages", "view_channel"}
    assert asked - synonyms == {*NEEDED, *FOR_THREADS, "manage_threads"} - synonyms
    assert not wanted.administrator
    assert not wanted.mention_everyone


def test_the_page_for_newcomers_shows_the_same_invitation() -> None:
    page = (Path(__file__).parents[3] / "docs" / "discord.md").read_text("utf-8")
    assert invite("APPLICATION_ID") in page
