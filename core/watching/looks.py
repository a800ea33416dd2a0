"""One way to look for all three kinds of watches, from where a thread's agent works."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from core.folders import workspace
from core.watch_rules import Look, Seen, Unseen, What
from core.watching.commands import CommandLook
from core.watching.files import FileLook
from core.watching.pages import PageLook

WORKSPACES = "workspaces"  # in the home: folders of threads that name none


class Looks(Protocol):
    """Looks once, within limits; never raises for what is out there."""

    async def look(self, what: What, lane: str, folder: str) -> Seen | Unseen:
        """``folder``: the lane's own workspace setting, "" for none."""


@dataclass(slots=True)
class Looking:
    home: Path
    shared: str  # the workspace of lanes that name none
    pages: PageLook
    commands: CommandLook
    files: FileLook

    async def look(self, what: What, lane: str, folder: str) -> Seen | Unseen:
        match what.look:
            case Look.URL:
                return await self.pages.look(what.target, what.follows)
            case Look.RUN:
                place = await self._made(lane, folder)
                if place is None:
                    return Unseen("the workspace of this thread cannot be used")
                return await self.commands.look(what.target, lane, place)
            case Look.FILE:
                place = workspace(self.home, lane, folder, self.shared)
                return await self.files.look(place, what.target)

    async def _made(self, lane: str, folder: str) -> Path | None:
        """The folder to run in; the thread's own is made, one that somebody named is not."""
        place = workspace(self.home, lane, folder, self.shared)
        if not folder and not self.shared:
            try:
                await asyncio.to_thread(place.mkdir, parents=True, exist_ok=True, mode=0o700)
            except OSError:
                return None
        return place
