"""What the settings say of platforms, and of who may speak there.

It must not import a platform: whether one can be loaded is found out in opening.py.
"""

from __future__ import annotations

from channels.registry import Wanted
from core.people import Lists
from gateway.choices import SlackMode, TelegramMode
from gateway.config import Settings
from gateway.control import OWNER


def wanted_channels(settings: Settings) -> list[Wanted]:
    """The platforms that the settings name; the local channel is always there."""
    wanted = []
    if settings.telegram_token and (
        settings.telegram_mode is TelegramMode.POLL or settings.telegram_webhook_secret
    ):  # a secret that is lost must not let everybody post
        wanted.append(Wanted("telegram", _telegram_options(settings)))
    posted = settings.slack_mode is SlackMode.WEBHOOK
    needed = settings.slack_signing_secret if posted else settings.slack_app_token
    if settings.slack_bot_token and needed:
        wanted.append(Wanted("slack", _slack_options(settings)))
    if settings.discord_token:
        wanted.append(Wanted("discord", _discord_options(settings)))
    return wanted


def _telegram_options(settings: Settings) -> dict[str, object]:
    options: dict[str, object] = {
        "token": settings.telegram_token.reveal(),
        "api_base": settings.telegram_api_base,
    }
    if settings.telegram_mode is TelegramMode.WEBHOOK:
        options["posted_to"] = f"{settings.web_url}/hooks/telegram"
        options["hook_secret"] = settings.telegram_webhook_secret.reveal()
    return options


def _slack_options(settings: Settings) -> dict[str, object]:
    options: dict[str, object] = {
        "bot_token": settings.slack_bot_token.reveal(),
        "app_token": settings.slack_app_token.reveal(),
        "api_base": settings.slack_api_base,
        "streams": settings.slack_streams.value,
        "people": _ids("slack", settings.admins | settings.members),
    }
    if settings.slack_mode is SlackMode.WEBHOOK:
        options["signing_secret"] = settings.slack_signing_secret.reveal()
    return options


def _ids(channel: str, named: frozenset[str]) -> frozenset[str]:
    """A channel's own, of ids as the settings have them."""
    pairs = (one.partition(":") for one in named)
    return frozenset(ident for name, _, ident in pairs if name == channel)


def _discord_options(settings: Settings) -> dict[str, object]:
    return {
        "token": settings.discord_token.reveal(),
        "api_base": settings.discord_api_base,
        "gateway_url": settings.discord_gateway_url,
        "auto_thread": settings.discord_auto_thread,
        "people": _ids("discord", settings.admins | settings.members),
        "places": _ids("discord", settings.places),
    }


def lists(settings: Settings) -> Lists:
    """Who and what the environment names. Whoever can open the local socket is the owner."""
    return Lists(
        admins=settings.admins | {OWNER},
        members=settings.members,
        places=settings.places,
        bots=settings.bots,
        admin_emails=settings.admin_emails,
        member_emails=settings.member_emails,
    )
