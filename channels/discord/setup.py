"""Checks for ``laneway doctor``: token, intents, and the bot's rights in each place.

Asks and changes nothing. It must not know who may talk.
"""

from __future__ import annotations

from collections.abc import Iterable

from discord import Permissions
from discord.http import Route

from channels.discord.content import snowflake
from channels.discord.errors import ApiError
from channels.discord.gateway import MESSAGE_CONTENT
from channels.discord.places import POSTS, Spot, spot_of
from channels.discord.rest import Rest
from channels.fields import Json, Malformed, as_object, items, maybe_integer, objects, string
from core.channel import SendError
from core.clock import SystemClock

Finding = tuple[str, bool, str, str]  # name, whether it is fine, what was seen, what to do
PORTAL = "discord.com/developers/applications"
ANSWER_WITHIN = 15.0
NEEDED = {
    "view_channel": "View Channel",
    "send_messages": "Send Messages",
    "send_messages_in_threads": "Send Messages in Threads",
    "read_message_history": "Read Message History",
    "attach_files": "Attach Files",
    "add_reactions": "Add Reactions",
}
FOR_THREADS = {"create_public_threads": "Create Public Threads"}
WISHED = {"manage_threads": "Manage Threads"}
_ASIDE = (ApiError, SendError, Malformed)


async def check(token: str, base: str, places: Iterable[str], auto_thread: bool) -> list[Finding]:
    """The findings, in the order in which people set things up."""
    Route.BASE = base.rstrip("/")
    rest = Rest(token, SystemClock(), ANSWER_WITHIN)
    try:
        return await _findings(rest, sorted(places), auto_thread)
    finally:
        await rest.close()


def invite(application: str) -> str:
    """The address that adds the bot to a server, with the rights it needs."""
    wanted = Permissions(**dict.fromkeys((*NEEDED, *FOR_THREADS, *WISHED), True))
    scopes = "bot+applications.commands"
    where = "https://discord.com/oauth2/authorize"
    return f"{where}?client_id={application}&scope={scopes}&permissions={wanted.value}"


async def _findings(rest: Rest, places: list[str], auto_thread: bool) -> list[Finding]:
    try:
        me = as_object(await rest.request(Route("GET", "/users/@me")), "the bot")
        number = snowflake(me, "id")
    except _ASIDE as error:
        fix = f"check LANEWAY_DISCORD_TOKEN ({PORTAL}, Bot, Reset Token) and the network"
        return [("discord token", False, _said(error), fix)]
    found: list[Finding] = [("discord token", True, f"{string(me, 'username')} ({number})", "")]
    try:
        app = as_object(await rest.application_info(), "the application")
        link = invite(snowflake(app, "id"))
        found += _application(app)
    except _ASIDE as error:
        link = invite(number)
        found.append(("discord application", False, _said(error), "run the check again"))
    found.append(await _servers(rest, link))
    for place in places:
        found.append(await _place(rest, place, number, auto_thread, link))
    return found


def _application(app: Json) -> list[Finding]:
    flags = maybe_integer(app, "flags")
    content, seen, fix = True, "may be read", ""
    if flags is None:
        seen = "Discord does not say whether it may be read"
    elif not flags & MESSAGE_CONTENT:
        content, seen = False, "is kept back"
        fix = f"{PORTAL}, Bot, switch on Message Content Intent, save, restart"
    found: list[Finding] = [("discord message content", content, seen, fix)]
    if endpoint := string(app, "interactions_endpoint_url"):
        fix = f"{PORTAL}, General Information, empty Interactions Endpoint URL"
        found.append(("discord buttons", False, f"presses are sent to {endpoint}", fix))
    return found


async def _servers(rest: Rest, link: str) -> Finding:
    try:
        answer = await rest.request(Route("GET", "/users/@me/guilds"))
        names = [string(one, "name") for one in objects({"servers": answer}, "servers")]
    except _ASIDE as error:
        if _untold(error):
            return ("discord servers", True, "Discord does not say which", "")
        return ("discord servers", False, _said(error), "run the check again")
    if not names:
        return ("discord servers", True, "none; direct messages work all the same", f"open {link}")
    return ("discord servers", True, ", ".join(sorted(names)[:10]), "")


async def _place(rest: Rest, place: str, me: str, auto_thread: bool, link: str) -> Finding:
    name = f"discord place {place}"
    try:
        channel = as_object(await rest.get_channel(place), "the channel")
        spot = spot_of(channel)
    except ApiError as error:
        if error.status in (403, 404):
            fix = f"check the id in LANEWAY_PLACES; add the bot to its server ({link}), or give it"
            return (name, False, "is not shown to the bot", f"{fix} View Channel there")
        return (name, False, _said(error), "run the check again")
    except _ASIDE as error:
        return (name, False, _said(error), "run the check again")
    if not spot.guild:
        return (name, True, "a direct chat", "")
    try:
        guild = Route("GET", "/guilds/{guild_id}", guild_id=spot.guild)
        server = as_object(await rest.request(guild), "the server")
        member = as_object(await rest.get_member(spot.guild, me), "the bot's membership")
        rights = rights_in(channel, server, member, me)
    except _ASIDE as error:
        if _untold(error):
            seen = f"#{spot.name}" if spot.name else "seen"
            return (name, True, f"{seen}; Discord does not say what the bot may do there", "")
        return (name, False, _said(error), "run the check again")
    return _judged(name, spot, rights, auto_thread)


def _judged(name: str, spot: Spot, rights: Permissions, auto_thread: bool) -> Finding:
    needed = dict(NEEDED)
    if auto_thread and spot.kind not in POSTS:
        needed |= FOR_THREADS
    lacking = [words for right, words in needed.items() if not getattr(rights, right)]
    seen = f"#{spot.name}" if spot.name else "seen"
    if lacking:
        fix = f"channel settings, Permissions, the bot's role: allow {', '.join(lacking)}"
        return (name, False, f"{seen} lacks {', '.join(lacking)}", fix)
    if not rights.manage_threads:
        fix = (
            "Manage Threads lets the bot name threads that others opened, and write in locked ones"
        )
        return (name, True, f"{seen}, all that is needed", fix)
    return (name, True, f"{seen}, all rights", "")


def rights_in(channel: Json, server: Json, member: Json, me: str) -> Permissions:
    """What the bot may do in a channel: roles first, then the channel's own rules. Pure."""
    if string(server, "owner_id") == me:
        return Permissions.all()
    everyone = string(server, "id")
    ours = {one for one in items(member, "roles") if isinstance(one, str)}
    value = 0
    for role in objects(server, "roles"):
        if string(role, "id") in ours | {everyone}:
            value |= _bits(role, "permissions")
    if Permissions(value).administrator:
        return Permissions.all()
    rules = {string(one, "id"): one for one in objects(channel, "permission_overwrites")}
    for group in ([everyone], sorted(ours), [me]):
        denied = allowed = 0
        for one in group:
            if (rule := rules.get(one)) is not None:
                denied |= _bits(rule, "deny")
                allowed |= _bits(rule, "allow")
        value = value & ~denied | allowed
    return Permissions(value)


def _bits(parent: Json, key: str) -> int:
    text = string(parent, key)
    if not text.isdecimal():
        raise Malformed(f"{key} is no number")
    return int(text)


def _said(error: Exception) -> str:
    return error.said if isinstance(error, ApiError) else str(error)


def _untold(error: Exception) -> bool:
    """Whether Discord has no answer at all; a bot may ask about every server that it is in."""
    return isinstance(error, ApiError) and error.status in (404, 405)
