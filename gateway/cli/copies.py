"""``laneway backup`` and ``laneway restore``."""

from __future__ import annotations

import argparse
from pathlib import Path

from core.clock import SystemClock
from core.store import copies
from core.store.errors import StoreError
from core.wording import count
from gateway import config
from gateway.cli.border import plain
from gateway.paths import DATABASE
from gateway.trouble import Trouble


def backup_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="where the copy goes")


def restore_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="a copy made by laneway backup")
    parser.add_argument(
        "--force", action="store_true", help="replace the database that is there (it is kept)"
    )


def backup(options: argparse.Namespace) -> int:
    """Works while the gateway runs: the copy is of one moment."""
    home = config.load().home
    try:
        copies.backup(home / DATABASE, options.file)
    except StoreError as fault:
        raise Trouble(str(fault)) from fault
    print(plain(f"Copied the database to {options.file}."))
    apart = f"The key file and .env in {home} are not in it; keep them apart, in a safe place."
    print(plain(apart))
    return 0


def restore(options: argparse.Namespace) -> int:
    home = config.load().home
    try:
        put = copies.restore(
            options.file, home / DATABASE, SystemClock().now(), force=options.force
        )
    except StoreError as fault:
        raise Trouble(str(fault)) from fault
    print(plain(f"Restored {options.file} as the database of {home}."))
    if put.replaced:
        print(plain(f"The one that was there is kept as {put.replaced}."))
    if put.turns or put.deliveries:
        print(
            f"Held back: {count(put.turns, 'turn')} that had not ended, "
            f"{count(put.deliveries, 'message')} not sent. "
            "See laneway turns; laneway turns --release lets them go."
        )
    return 0
