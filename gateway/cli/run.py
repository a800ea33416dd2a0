"""``laneway run``: the gateway in the foreground."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal

from core.clock import SystemClock
from core.store.errors import StoreError
from gateway import config, logs
from gateway.app import Gateway
from gateway.config import Settings
from gateway.socket_path import UnsafeSocket, private_folder, socket_path
from gateway.trouble import Trouble
from gateway.web.listener import PortTaken

log = logging.getLogger("laneway")


def arguments(parser: argparse.ArgumentParser) -> None:
    """It takes none: everything is a setting."""


def main(options: argparse.Namespace) -> int:
    """0 after SIGTERM or SIGINT."""
    settings = config.load()
    logs.set_up(settings)
    try:
        private_folder(socket_path(settings.home), settings.home)
        asyncio.run(_live(settings))
    except (StoreError, PortTaken, UnsafeSocket) as fault:
        raise Trouble(str(fault)) from fault
    return 0


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
