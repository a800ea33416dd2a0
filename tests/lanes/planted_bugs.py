"""Plants faults in the lane rules, one at a time, and asks whether the lane tests find them.

    python tests/lanes/planted_bugs.py [WORD]

With a WORD only the faults whose description has it. Each fault is a replacement of text in a
copy of the rules; the tests run against the copy. Ends with 1 if a fault survives, or if its text
is no longer found (then the rules have changed: plant it anew).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).resolve().parents[2]
COPIED = (
    "core/__init__.py",
    "core/turns.py",
    "core/lane_events.py",
    "core/lane_commands.py",
    "core/waiting.py",
    "core/lanes",
)
SLOW = ("test_histories.py", "test_every_state.py")  # most faults are found before these run


class Fault(NamedTuple):
    what: str
    file: str
    text: str
    instead: str


FAULTS = [
    # Who starts
    Fault(
        "one more than the cap",
        "core/lanes/slots.py",
        "if self.running >= limits.running:",
        "if self.running > limits.running:",
    ),
    Fault(
        "a person may have one more than their cap",
        "core/lanes/slots.py",
        "return self.persons[turn.person] < limits.per_person",
        "return self.persons[turn.person] <= limits.per_person",
    ),
    Fault(
        "jobs may take every slot",
        "core/lanes/slots.py",
        "max(1, limits.running // 2)",
        "limits.running",
    ),
    Fault(
        "a single slot is closed to jobs",
        "core/lanes/slots.py",
        "max(1, limits.running // 2)",
        "limits.running // 2",
    ),
    Fault(
        "a job's turn counts for its owner",
        "core/lanes/slots.py",
        "            self.jobs += by\n        else:",
        "            self.jobs += by\n        if True:",
    ),
    Fault(
        "folders inside the used one are free",
        "core/lanes/slots.py",
        " and not any(up in self._used for up in _upwards(folder))",
        "",
    ),
    Fault(
        "folders around the used one are free",
        "core/lanes/slots.py",
        "folder not in self._spanned",
        "folder not in self._used",
    ),
    Fault(
        "a folder stays used for ever",
        "core/lanes/board.py",
        "            self.slots.count_folder(before, -1)\n",
        "            pass\n",
    ),
    Fault(
        "the folder of the next turn is held, not the running one's",
        "core/lanes/board.py",
        'self._follow_folder(before.folder if before else "", after.folder if after else "")',
        "self._follow_folder(\n"
        '            before.facts.folder if before and before.main else "",\n'
        '            after.facts.folder if after and after.main else "",\n'
        "        )",
    ),
    Fault(
        "a freed slot starts nobody",
        "core/lanes/board.py",
        "            self.slots.count(before, -1)\n            self.freed = True",
        "            self.slots.count(before, -1)",
    ),
    Fault(
        "a freed folder starts nobody",
        "core/lanes/board.py",
        "            self.slots.count_folder(before, -1)\n            self.freed = True",
        "            self.slots.count_folder(before, -1)",
    ),
    Fault(
        "a resume starts nobody",
        "core/lanes/board.py",
        "        self.door = door\n        self.freed = True",
        "        self.door = door",
    ),
    Fault(
        "a lane whose folder changed is not looked at",
        "core/lanes/board.py",
        "        if after is not None:\n            self.touched.add(key)",
        "        if after is not None and after != before:\n            self.touched.add(key)",
    ),
    Fault(
        "the shortest waiting lane first",
        "core/lanes/starting.py",
        "lane = board.get(board.line[index])",
        "lane = board.get(board.line[len(board.line) - 1 - index])",
    ),
    Fault(
        "a lane waits since its head came, whatever it had",
        "core/waiting.py",
        "(max(head.arrived, ended), head.id, lane)",
        "(head.arrived, head.id, lane)",
    ),
    Fault(
        "a blocked lane blocks the line",
        "core/lanes/starting.py",
        "        else:\n            index += 1",
        "        else:\n            break",
    ),
    Fault(
        "a turn that asks keeps its slot",
        "core/lanes/lane.py",
        "return None if self.main is None or self.main.asking else self.main",
        "return self.main",
    ),
    Fault(
        "the slot is free before the engine is gone",
        "core/lanes/lane.py",
        "return None if self.main is None or self.main.asking else self.main",
        "main = self.main\n"
        "        return None if main is None or main.asking or main.status.over else main",
    ),
    Fault(
        "a start is not counted",
        "core/lanes/starting.py",
        "attempts=turn.attempts + 1, epoch",
        "attempts=turn.attempts, epoch",
    ),
    Fault(
        "a turn starts in the epoch it arrived in",
        "core/lanes/starting.py",
        ", epoch=lane.facts.epoch)",
        ", epoch=turn.epoch)",
    ),
    Fault(
        "a drain starts what waits",
        "core/lanes/starting.py",
        "if board.door.draining or board.door.paused:",
        "if board.door.paused:",
    ),
    Fault(
        "a paused engine starts",
        "core/lanes/starting.py",
        "        and lane.facts.engine not in board.door.engines\n",
        "",
    ),
    Fault(
        "a paused lane starts",
        "core/lanes/lane.py",
        "not self.waiting or self.facts.paused",
        "not self.waiting",
    ),
    Fault(
        "resuming one engine resumes them all",
        "core/lanes/rules.py",
        "if name != event.engine}",
        "if False}",
    ),
    # What waits
    Fault(
        "a new message goes before the others",
        "core/waiting.py",
        "        return (*queue, turn)",
        "        return (turn, *queue)",
    ),
    Fault(
        "the queue has no limit",
        "core/waiting.py",
        ">= limits.queue\n",
        "> 999\n",
    ),
    Fault(
        "firings of jobs count for the queue limit",
        "core/waiting.py",
        "sum(not turn.origin.job for turn in queue)",
        "len(queue)",
    ),
    Fault(
        "firings of jobs are refused",
        "core/lanes/rules.py",
        "if not turn.origin.job and full(",
        "if full(",
    ),
    Fault(
        "other people's messages are collected",
        "core/waiting.py",
        "last.person == turn.person\n        and ",
        "",
    ),
    Fault(
        "an offered message is collected into",
        "core/waiting.py",
        "        and last.offered_to is None\n",
        "",
    ),
    Fault(
        "an interrupting message goes to the end",
        "core/lanes/rules.py",
        "            turn = replace(turn, rank=Rank.INTERRUPTING)\n",
        "",
    ),
    Fault(
        "a turn without a prompt is interrupted",
        "core/lanes/rules.py",
        "            if main.status is Status.RUNNING:\n",
        "            if True:\n",
    ),
    Fault(
        "an offered message is edited",
        "core/lanes/one_lane.py",
        "turn is None or turn.offered_to is not None",
        "turn is None",
    ),
    # Steering
    Fault(
        "anyone steers",
        "core/lanes/steering.py",
        "person != main.person and not admin",
        "False",
    ),
    Fault(
        "a turn of an earlier session is steered",
        "core/lanes/steering.py",
        " or main.epoch != lane.facts.epoch",
        "",
    ),
    Fault(
        "what is still offered at the end runs again",
        "core/lanes/steering.py",
        "        if turn.offered_to is None:\n            kept.append(turn)\n        else:",
        "        kept.append(turn)\n        if turn.offered_to is not None:",
    ),
    Fault(
        "a taken message is left without an end",
        "core/lanes/steering.py",
        "        step.save(replace(turn, status=status))\n    for turn in lane.waiting",
        "        pass\n    for turn in lane.waiting",
    ),
    Fault(
        "a refused message that was stopped waits again",
        "core/lanes/steering.py",
        "    if turn.stop is not None:\n        step.tell(",
        "    if False:\n        step.tell(",
    ),
    Fault(
        "a refused message keeps its place in front",
        "core/lanes/steering.py",
        "status=Status.WAITING, rank=Rank.ORDINARY, offered_to=None",
        "status=Status.WAITING, offered_to=None",
    ),
    Fault(
        "a message is withdrawn again and again",
        "core/lanes/steering.py",
        "if turn.stop is not None or turn.offered_to is None:",
        "if turn.offered_to is None:",
    ),
    # Stops
    Fault(
        "a second stop cancels again",
        "core/lanes/stopping.py",
        "    if turn.stop is None:\n        step.do(Cancel(turn.id))",
        "    if True:\n        step.do(Cancel(turn.id))",
    ),
    Fault(
        "a stop of a turn that is stopping is told like the first",
        "core/lanes/stopping.py",
        "(stopping if after is turn else ends).append(after)",
        "ends.append(after)",
    ),
    Fault(
        "a skip of a turn that is stopping is told like the first",
        "core/lanes/stopping.py",
        "    if told and after is not turn:",
        "    if told:",
    ),
    Fault(
        "a stop is not saved",
        "core/lanes/stopping.py",
        "    return step.save(replace(turn, stop=stop))",
        "    return replace(turn, stop=stop)",
    ),
    Fault(
        "anyone's stop drops everything",
        "core/lanes/stopping.py",
        "if not everything and turn.person != by.by:",
        "if False:",
    ),
    Fault(
        "a stop forgets side answers",
        "core/lanes/stopping.py",
        "for turn in (main, *lane.sides):",
        "for turn in (main,):",
    ),
    Fault(
        "a stop button hits the next turn",
        "core/lanes/stopping.py",
        "        if not _unfinished(lane, event.turn):\n            return lane\n",
        "",
    ),
    Fault(
        "a finished turn is stopped all the same",
        "core/lanes/endings.py",
        "    if result is Result.DONE:\n        return Status.DONE\n",
        "    if result is Result.DONE and stop is None:\n        return Status.DONE\n",
    ),
    Fault(
        "the prompt of a stopping turn goes out",
        "core/lanes/running.py",
        " or turn.stop is not None:\n        return lane\n    step.do(Prompt",
        ":\n        return lane\n    step.do(Prompt",
    ),
    Fault(
        "the end of a drain stays when a person stops the turn",
        "core/lanes/stopping.py",
        "elif endings.deliberate(turn.stop) or not endings.deliberate(stop):",
        "else:",
    ),
    Fault(
        "a late stop hits whatever runs by then",
        "core/lanes/stopping.py",
        "        main = None  # nobody asked for its end\n",
        "        pass\n",
    ),
    Fault(
        "a late stop forgets whose turn it found",
        "core/lanes/stopping.py",
        "    found = event.first or main\n",
        "    found = main\n",
    ),
    Fault(
        "a late stop lets go what it would have dropped",
        "core/lanes/stopping.py",
        "main.id != found.id and not (everything or main.person == event.person):",
        "main.id != found.id:",
    ),
    Fault(
        "a late skip hits whatever runs by then",
        "core/lanes/stopping.py",
        "turn = lane.main if event.turn is None else _running(lane, event.turn)",
        "turn = lane.main",
    ),
    # Ends
    Fault(
        "late reports end the present turn",
        "core/lanes/running.py",
        "    if main is None or main.id != event.turn:\n        return lane\n    if main.status",
        "    if main is None:\n        return lane\n    if main.status",
    ),
    Fault(
        "an unsent prompt is tried for ever",
        "core/lanes/endings.py",
        "if turn.attempts > limits.attempts:",
        "if False:",
    ),
    Fault(
        "an unsent turn goes to the end of its lane",
        "core/lanes/endings.py",
        "status=Status.WAITING, rank=Rank.AGAIN, asking=0",
        "status=Status.WAITING, asking=0",
    ),
    Fault(
        "an unsent turn costs its lane its place in the line",
        "core/lanes/running.py",
        'return replace(lane, main=None, folder="", waiting=queued(lane.waiting, main))',
        "facts = replace(lane.facts, ended=event.at)\n"
        "        queue = queued(lane.waiting, main)\n"
        '        return replace(lane, facts=facts, main=None, folder="", waiting=queue)',
    ),
    Fault(
        "the end of a turn is not stored with its lane",
        "core/lanes/running.py",
        "facts = step.save_lane(lane.key, replace(lane.facts, ended=event.at))",
        "facts = replace(lane.facts, ended=event.at)",
    ),
    Fault(
        "a question outlives its turn",
        "core/lanes/step.py",
        "replace(turn, status=status, asking=0)",
        "replace(turn, status=status)",
    ),
    Fault(
        "an end is told twice",
        "core/lanes/step.py",
        "            self.tell(news, turn)\n        return turn",
        "            self.tell(news, turn)\n            self.tell(news, turn)\n        return turn",
    ),
    Fault(
        "a time limit is not told",
        "core/lanes/endings.py",
        "        case _:\n            return News.ENDED",
        "        case _:\n            return News.ENDED if turn.stop is None else None",
    ),
    # Crashes
    Fault(
        "a running turn runs again after a crash",
        "core/lanes/endings.py",
        "reached = turn.status is Status.RUNNING or turn.kind is Kind.SIDE",
        "reached = turn.kind is Kind.SIDE",
    ),
    Fault(
        "a side answer becomes a main turn after a crash",
        "core/lanes/endings.py",
        "reached = turn.status is Status.RUNNING or turn.kind is Kind.SIDE",
        "reached = turn.status is Status.RUNNING",
    ),
    Fault(
        "a stopped turn runs again after a crash",
        "core/lanes/endings.py",
        "if reached or deliberate(turn.stop):",
        "if reached:",
    ),
    Fault(
        "an offered message runs again after a crash",
        "core/lanes/rules.py",
        "            if turn.offered_to is None:\n                now, news = endings.after",
        "            if True:\n                now, news = endings.after",
    ),
    Fault(
        "a pause ends with a crash",
        "core/lanes/rules.py",
        "paused=paused_all, engines=dict(paused_engines)",
        "engines=dict(paused_engines)",
    ),
    Fault(
        "facts of lanes are forgotten in a crash",
        "core/lanes/rules.py",
        "facts.get(now.lane, LaneFacts())",
        "LaneFacts()",
    ),
    # Side answers
    Fault(
        "one more side answer in a lane",
        "core/lanes/aside.py",
        "in_lane >= door.limits.sides_per_lane",
        "in_lane > door.limits.sides_per_lane",
    ),
    Fault(
        "one more side answer in all",
        "core/lanes/aside.py",
        "in_all >= door.limits.sides:",
        "in_all > door.limits.sides:",
    ),
    Fault(
        "a side answer starts in a pause",
        "core/lanes/aside.py",
        "        return Refusal.PAUSED\n",
        "        pass\n",
    ),
    Fault(
        "a message moved aside stays in the queue too",
        "core/lanes/aside.py",
        "rest = replace(lane, waiting=without(lane.waiting, turn.id))",
        "rest = lane",
    ),
    Fault(
        "anyone moves a message aside",
        "core/lanes/aside.py",
        "    elif turn.person != event.person and not event.admin:\n",
        "    elif False:\n",
    ),
    Fault(
        "an offered message is moved aside",
        "core/lanes/aside.py",
        "if lane is None or turn is None or turn.offered_to is not None:",
        "if lane is None or turn is None:",
    ),
    Fault(
        "a message is moved aside whatever stands against it",
        "core/lanes/aside.py",
        "hindrance(board, lane, turn, event.can_side and is_message(turn))",
        "None",
    ),
    Fault(
        "a job's turn is moved aside",
        "core/lanes/aside.py",
        "event.can_side and is_message(turn)",
        "event.can_side",
    ),
    # The draft
    Fault(
        "an undo forgets the door",
        "core/lanes/board.py",
        "                self.door = past\n",
        "                pass\n",
    ),
    Fault(
        "an undo leaves the counts behind",
        "core/lanes/board.py",
        "                self._exchange(key, self._lanes.get(key), lane)\n",
        "                self._lanes[key] = lane or self._lanes[key]\n",
    ),
    Fault(
        "facts on their way win over memory",
        "core/lanes/board.py",
        "return self._lanes.get(key) or Lane(key, facts)",
        "lane = self._lanes.get(key)\n"
        "        return Lane(key, facts) if lane is None or lane.idle else lane",
    ),
    Fault(
        "idle lanes stay in memory",
        "core/lanes/board.py",
        "while len(self._idle) > REMEMBERED:",
        "while False:",
    ),
    Fault(
        "a busy lane leaves memory",
        "core/lanes/board.py",
        "        else:\n            self._idle.pop(key, None)\n",
        "",
    ),
    Fault(
        "a start comes before its save",
        "core/lanes/step.py",
        "return saves + self._then",
        "return self._then + saves",
    ),
]


def found_by_tests(fault: Fault) -> tuple[str, float]:
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="planted-") as name:
        place = Path(name)
        for path in COPIED:
            copy(PROJECT / path, place / path)
        copy(PROJECT / "tests/lanes", place / "tests/lanes")
        (place / "tests/__init__.py").touch()
        source = (place / fault.file).read_text()
        if source.count(fault.text) != 1:
            return "TEXT NOT FOUND" if fault.text not in source else "TEXT NOT UNIQUE", 0.0
        (place / fault.file).write_text(source.replace(fault.text, fault.instead))
        caught = fails(place)
    return "caught" if caught else "SURVIVED", time.monotonic() - begin


def fails(place: Path) -> bool:
    quick = sorted(path.name for path in (place / "tests/lanes").glob("test_*.py"))
    order = [name for name in quick if name not in SLOW] + list(SLOW)
    files = [f"tests/lanes/{name}" for name in order]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *files]
    env = {
        **os.environ,
        "PYTHONPATH": str(place),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_PROFILE": "planted",
    }
    try:
        run = subprocess.run(command, cwd=place, env=env, capture_output=True, timeout=300)
    except subprocess.TimeoutExpired:
        return True  # the fault made the rules hang
    if run.returncode not in (0, 1):  # the tests did not run at all
        sys.exit(f"pytest ended with {run.returncode}:\n{run.stdout.decode()[-2000:]}")
    return run.returncode == 1


def copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def main() -> int:
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    faults = [fault for fault in FAULTS if word in fault.what]
    left = 0
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        results = pool.map(found_by_tests, faults)
        for fault, (verdict, took) in zip(faults, results, strict=True):
            left += verdict != "caught"
            print(f"{verdict:15} {took:5.1f} s  {fault.what}", flush=True)
    print(f"{len(faults) - left} of {len(faults)} planted faults caught")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
