"""``laneway run``: the gateway in the foreground."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import signal
import time

from core import prices
from core.clock import SystemClock
from core.store.errors import Locked, StoreError
from core.store.home import locked
from gateway import logs, outlet, saved, terminal
from gateway.app import Gateway
from gateway.channel_parts import wanted_channels
from gateway.choices import EngineName
from gateway.cli.called import called
from gateway.config import BadSettings, Settings, Written
from gateway.page_address import listening_address, page_address
from gateway.signin_links import link_address
from gateway.socket_path import UnsafeSocket, answers, private_folder, socket_path
from gateway.trouble import Trouble
from gateway.web.listener import PortTaken

PATIENCE = 3.0  # seconds until a home that somebody else holds is a trouble

log = logging.getLogger("laneway")


def arguments(parser: argparse.ArgumentParser) -> None:
    """It takes none: everything is a setting."""


def main(options: argparse.Namespace) -> int:
    """0 after SIGTERM or SIGINT."""
    gc.disable()  # until it is ready: what a start makes stays, and there is much of it
    outlet.install()
    loaded = saved.look()
    settings = loaded.settings
    if problems := list(prices.problems(settings.home, set(EngineName))):
        raise BadSettings(problems)
    logs.set_up(settings)
    try:
        private_folder(socket_path(settings.home), settings.home)
        _begin(settings, loaded.written)
    except (StoreError, PortTaken, UnsafeSocket) as fault:
        raise Trouble(str(fault)) from fault
    finally:
        outlet.leave()
    return 0


def _begin(settings: Settings, written: Written) -> None:
    """Live. A command that looks at the home while no gateway runs holds it for a moment only."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with locked(settings.home):
                pass  # before the port, which a second start wants as well
            asyncio.run(_live(settings, written))
        except Locked:
            if answers(socket_path(settings.home)) or time.monotonic() > end:
                raise
            time.sleep(0.1)
        else:
            return


async def _live(settings: Settings, written: Written) -> None:
    gateway = Gateway(settings, SystemClock(), written=written)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, gateway.stop)
    await gateway.run(lambda: _ready(settings, gateway.web_port, gateway.owner_token))
    log.info("stopped", extra={"event": "stopped"})


def _ready(settings: Settings, port: int, owner_token: str = "") -> None:
    named = [one.name.capitalize() for one in wanted_channels(settings)]
    channels = f"{', '.join(named)} and this machine" if named else "this machine only"
    health = f"{listening_address(settings, port)}/readyz"
    log.info("engine %s, health at %s, listening to %s", settings.engine.value, health, channels)
    page = page_address(settings, port)
    log.info('open %s in a browser, or in another terminal: %s say "hello"', page, called())
    if owner_token:
        link = link_address(page, owner_token)
        terminal.tell(
            "To sign in on the page as the owner, open this address (it works once, until the next"
            f" start):\n\n    {link}\n\nAnother one: {called()} signin",
            settings.log_format,
        )
    logs.ready(settings)
    gc.freeze()  # nor is it gone through later, when people wait
    gc.enable()
