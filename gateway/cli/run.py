"""``laneway run``: the gateway in the foreground."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import time
from collections.abc import Iterator

from core.clock import SystemClock
from core.store.errors import Locked, StoreError
from gateway import config, logs
from gateway.app import Gateway
from gateway.config import BadSettings, Settings
from gateway.settings_table import EngineName, TelegramMode
from gateway.socket_path import UnsafeSocket, answers, private_folder, socket_path
from gateway.trouble import Trouble
from gateway.web.listener import PortTaken

PATIENCE = 3.0  # seconds until a home that somebody else holds is a trouble

log = logging.getLogger("laneway")


def arguments(parser: argparse.ArgumentParser) -> None:
    """It takes none: everything is a setting."""


def main(options: argparse.Namespace) -> int:
    """0 after SIGTERM or SIGINT."""
    settings = config.load()
    if problems := list(missing_here(settings)):
        raise BadSettings(problems)
    logs.set_up(settings)
    for word in unused_here(settings):
        log.warning("%s", word)
    try:
        private_folder(socket_path(settings.home), settings.home)
        _begin(settings)
    except (StoreError, PortTaken, UnsafeSocket) as fault:
        raise Trouble(str(fault)) from fault
    return 0


def missing_here(settings: Settings) -> Iterator[str]:
    """What is asked for and not part of this version, so that the gateway could not do its work."""
    for name, engine in (
        ("LANEWAY_ENGINE", settings.engine),
        ("LANEWAY_FALLBACK_ENGINE", settings.fallback_engine),
    ):
        if engine not in (EngineName.DEMO, EngineName.ACP, None):
            yield f"{name}={engine} is not part of this version: set demo, or acp with a command"
    if settings.telegram_mode is TelegramMode.WEBHOOK:
        yield "LANEWAY_TELEGRAM_MODE=webhook is not part of this version: set poll"


def unused_here(settings: Settings) -> Iterator[str]:
    """Settings that are kept for a later version and do nothing in this one."""
    later = {"Slack": settings.slack_bot_token, "Discord": settings.discord_token}
    for platform, token in later.items():
        if token:
            yield f"{platform} is not part of this version; its settings are kept and not used"


def _begin(settings: Settings) -> None:
    """Live. A command that looks at the home while no gateway runs holds it for a moment only."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            asyncio.run(_live(settings))
        except Locked:
            if answers(socket_path(settings.home)) or time.monotonic() > end:
                raise
            time.sleep(0.1)
        else:
            return


async def _live(settings: Settings) -> None:
    gateway = Gateway(settings, SystemClock())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, gateway.stop)
    await gateway.run(lambda: _ready(settings))
    log.info("stopped", extra={"event": "stopped"})


def _ready(settings: Settings) -> None:
    address = f"http://{settings.web_host}:{settings.web_port}"
    channels = "Telegram and this machine" if settings.telegram_token else "this machine only"
    log.info(
        "engine %s, health at %s/readyz, listening to %s", settings.engine.value, address, channels
    )
    log.info('in another terminal: laneway say "hello"')
    logs.ready(settings)
