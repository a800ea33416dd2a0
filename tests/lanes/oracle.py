"""What must hold after every event, worked out the slow way from store and engines alone.

Knows nothing of how the lane rules keep their counts and their line.
"""

from __future__ import annotations

from collections.abc import Collection

from core.lane_commands import Start
from core.lanes import LaneView, Phase
from core.turns import Kind, LaneFacts, Status, Turn
from tests.lanes.world import World


def check(world: World, lanes: Collection[str]) -> None:
    views = {lane: view for lane in lanes if (view := world.lanes.view(lane))}
    mains = [turn for turn in world.engines.values() if turn.kind is not Kind.SIDE]
    for lane in lanes:
        _lane_agrees_with_store(world, lane, views.get(lane))
    assert len({turn.lane for turn in mains}) == len(mains), "two main turns in a lane"
    assert world.lanes.running == len(_slots(world, mains))
    for person in {turn.person for turn in world.saved.values()}:
        mine = [turn for turn in _slots(world, mains) if not turn.origin.job]
        assert world.lanes.running_for(person) == sum(turn.person == person for turn in mine)
    waiting = sorted(_entry(world, view) for view in views.values() if _in_line(view))
    assert world.lanes.lanes_waiting == len(waiting)
    for place, (_, _, lane) in enumerate(waiting, start=1):
        assert views[lane].place == place
    if not world.draining and not world.paused_all:
        for _, _, lane in waiting:
            assert not _could_start(world, views[lane].waiting[0], mains), "could start"
    _starts_were_right(world, views, mains)
    _sides_fit(world, lanes)


def _lane_agrees_with_store(world: World, lane: str, view: LaneView | None) -> None:
    open_turns = [
        turn for turn in world.saved.values() if turn.lane == lane and not turn.status.over
    ]
    engines = {turn.id for turn in world.engines.values() if turn.lane == lane}
    if view is None:
        assert not open_turns, "a turn was lost"
        assert not engines
        return
    main = (view.main,) if view.main else ()
    assert {turn.id for turn in (*main, *view.sides)} == engines
    known = [*main, *view.taken, *view.waiting, *view.sides]
    assert {turn.id for turn in open_turns} <= {turn.id for turn in known}, "a turn was lost"
    assert len({turn.id for turn in known}) == len(known), "a turn is in two places"
    for turn in known:
        saved = world.saved[turn.id]
        assert (saved.status, saved.rank, saved.stop) == (turn.status, turn.rank, turn.stop)
        assert saved.offered_to == turn.offered_to
    assert all(turn.status is Status.WAITING for turn in view.waiting)
    order = [(turn.rank, turn.id) for turn in view.waiting]
    assert order == sorted(order), "out of order"
    offered = [turn.offered_to for turn in (*view.waiting, *view.taken) if turn.offered_to]
    assert not offered or (view.main and {view.main.id} == set(offered))
    if offered:
        assert view.phase in (Phase.RUNNING, Phase.ASKING)


def _slots(world: World, mains: list[Turn]) -> list[Turn]:
    """Those that take up a slot: not while a person has to decide."""
    return [
        turn
        for turn in mains
        if not (world.asking[turn.id] and world.status(turn.id) is Status.RUNNING)
    ]


def _in_line(view: LaneView) -> bool:
    return view.main is None and bool(view.waiting) and not view.facts.paused


def _entry(world: World, view: LaneView) -> tuple[int, int, str]:
    ended = world.facts.get(view.lane, LaneFacts()).ended
    return (max(view.waiting[0].arrived, ended), view.waiting[0].id, view.lane)


def _could_start(world: World, head: Turn, mains: list[Turn]) -> bool:
    """Whether the turn could start beside these."""
    slots, limits = _slots(world, mains), world.limits
    facts = world.facts.get(head.lane, LaneFacts())
    if facts.engine in world.paused_engines or len(slots) >= limits.running:
        return False
    if world.spent_by.everybody or head.person in world.spent_by.people:
        return False
    jobs = [turn for turn in slots if turn.origin.job]
    if head.origin.job:
        if len(jobs) >= max(1, limits.running // 2):
            return False
    elif sum(not turn.origin.job and turn.person == head.person for turn in slots) >= (
        limits.per_person
    ):
        return False
    return not any(_overlap(facts.folder, world.folders[turn.id]) for turn in mains)


def _overlap(one: str, other: str) -> bool:
    if not one or not other:
        return False
    one, other = one.rstrip("/") + "/", other.rstrip("/") + "/"
    return one.startswith(other) or other.startswith(one)


def _starts_were_right(world: World, views: dict[str, LaneView], mains: list[Turn]) -> None:
    """Each start, the last one first: it fitted, and no lane that could have started then had
    waited longer."""
    waiting = {view.lane: view for view in views.values() if _in_line(view)}
    left = list(mains)
    later: list[tuple[tuple[int, int, str], Turn]] = []
    for start in reversed(world.said(Start)):
        turn = start.turn
        left = [other for other in left if other.id != turn.id]
        assert _could_start(world, turn, left), "started although it did not fit"
        ended = world.facts.get(turn.lane, LaneFacts()).ended
        mine = (max(turn.arrived, ended), turn.id, turn.lane)
        assert all(entry > mine for entry, _ in later), "started before one that waited longer"
        for view in waiting.values():
            if _entry(world, view) < mine:
                assert not _could_start(world, view.waiting[0], left), "overtaken"
        behind = views[turn.lane].waiting
        assert all((turn.rank, turn.id) < (other.rank, other.id) for other in behind)
        later.append((mine, turn))


def _sides_fit(world: World, lanes: Collection[str]) -> None:
    sides = [turn for turn in world.engines.values() if turn.kind is Kind.SIDE]
    assert len(sides) <= world.limits.sides
    for lane in lanes:
        assert sum(turn.lane == lane for turn in sides) <= world.limits.sides_per_lane
