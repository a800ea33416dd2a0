"""``laneway signin``: a link that signs in on the page, for whoever can read the home."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING, Any

from gateway import saved
from gateway.cli.border import plain
from gateway.cli.client import ask
from gateway.trouble import Trouble

if TYPE_CHECKING:
    from core.people import People
    from core.store.store import Store


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "email", nargs="?", default="", metavar="EMAIL",
        help="an address of the lists; without one the owner, while no admin address is set",
    )  # fmt: skip


def main(options: argparse.Namespace) -> int:
    """0 when a link was made."""
    settings = saved.load()
    was_down = False

    async def down(store: Store, people: People) -> Any:
        from core.clock import SystemClock
        from gateway.page_address import page_address
        from gateway.signin_links import NoLink, SigninDesk

        nonlocal was_down
        was_down = True
        if not settings.web_port and not settings.web_url:
            raise Trouble("where the page will be is only known while the gateway runs; start it")
        page = page_address(settings, settings.web_port)
        try:
            return await SigninDesk(store, people, SystemClock().now, lambda: page).make(request)
        except NoLink as fault:
            raise Trouble(str(fault)) from fault

    request = {"do": "signin", "email": options.email}
    made = asyncio.run(ask(settings, request, down))
    who = "the owner" if made["person"].startswith("local:") else made["person"].partition(":")[2]
    print(plain(made["address"]))
    print(plain(f"Open it to sign in as {who}. It works once, within 10 minutes."))
    if was_down:
        print("The gateway is down: start it first, with laneway run.")
    return 0
