"""The lane rules: what starts, what waits, what a stop ends, what a crash leaves.

Two things to know first:

1) Everything that decides when a turn runs is in this package (and waiting.py, the order of what
   waits). No clock, no store, no await: times come in with events, what should happen goes out as
   commands. They are listed in lane_events.py and lane_commands.py.

2) These rules do not know whether a command succeeded. The shell stores what `Lanes.handle`
   returns in one transaction with the event, and carries commands out only after that. When the
   transaction fails it calls `undo`, and nothing has happened; when it is committed, `settle`.

A main turn goes through its lane, one at a time, on one of these ways:

    waiting --> starting --> running <--> asking
       ^           |            |           |
       |           +------------+-----------+-- Finished --> settling -- Ended --> over
       |           |            |
       +-- Ended --+-- Unsent --+      (the prompt never left: it will start again)

It is *settling* from `Finished` (its end is stored, its answer on the way) until `Ended` (its
engine is gone), and keeps its slot and its folder that long. A report about a turn that is not
under way in its lane is late and changes nothing.

What `handle` returns: at most one `Save` a turn, and all of them first, so no start comes before
its save. Each end other than done is told exactly once: when it comes, or, where a person stopped
or skipped the turn, as the answer to that.

Where to look:

    rules.py     Lanes: one event in, commands out; arrivals, starts, pauses, drain, restore
    one_lane.py  the events of one lane, each a function from lane to lane, found in
      running.py     a turn on its way from start to end
      stopping.py    stop, skip, drop
      steering.py    messages offered to the running turn
    endings.py   how a turn ends: by result, by stop, by crash
    lane.py      one lane, a frozen value
    step.py      what one event brings about, collected
    slots.py     the caps
    board.py     all lanes, as a draft that can be taken back
"""

from core.lanes.board import Mark
from core.lanes.lane import Hold, LaneView, Phase
from core.lanes.rules import Lanes

__all__ = ["Hold", "LaneView", "Lanes", "Mark", "Phase"]
