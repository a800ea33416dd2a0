"""A scripted agent that speaks the Agent Client Protocol: the prompt is its script.

Run it by its path, as any agent: ``LANEWAY_ACP_COMMAND="python tests/fakes/acp_agent.py"``. It uses
little of the standard library and nothing else, so it starts in some 40 ms, and it can misbehave in
every way below.

Each line of the prompt is a directive; any other line is answered by ``echo[N]: LINE`` in word
pieces, N being the number of earlier turns of the session:

    /say TEXT            a piece of the answer          /think TEXT        a thought
    /stream N [SECONDS]  N pieces "w0 w1 …"             /flood N           N pieces at full speed
    /repeat N TEXT       the text N times, one piece    /lines N           N numbered lines
    /letters SECONDS "TEXT"  a JSON string, a piece a character
    /sleep SECONDS       obeys a cancel                 /hang              for ever; obeys a cancel
    /tool TITLE          a tool that starts and ends    /write NAME TEXT   a file, unless read-only
    /approve COMMAND     asks, then "ran: …" or "denied: …"; the lines after it are still done
    /ask-always COMMAND  asks, offering only "always"   /withdraw COMMAND  asks, then takes it back
    /edit NAME           asks with a diff               /hang-if-denied    after a denied /approve
    /approve-big SIZE    the same with a command of so many characters
    /usage IN OUT COST   tokens of the turn, cost added to the session's total (USD)
    /total COST          sets the session's total cost  /file NAME TEXT    makes a file, links it
    /image               a small PNG in the answer      /blocks            the prompt's blocks, JSON
    /env                 its environment's names, JSON  /env NAME          one value
    /mode  /cwd  /turns  /pid                           what it is asked for
    /stop-reason WORD    ends the turn with this reason
    /refuse-old          ends it with *refusal*, but in a conversation without earlier turns
    /crash [CODE]        exits at once                  /exit-after [CODE] exits after the answer
    /kill                SIGKILL to itself              /error MESSAGE     a JSON-RPC error
    /big KB              a piece of that size           /line BYTES        a tool update, one line
                                                                           of exactly that size
    /stderr BYTES        to the error output            /badline           lines that are no JSON
    /complain TEXT       words to the error output
    /halfline            half a message, then exit      /unknown           notifications, unknown
    /late TEXT           a piece after the answer       /ignore-cancel     from here on
    /ignore-term         SIGTERM and the end of stdin are ignored from here on
    /spawn SECONDS [clean]   a child in a session of its own that ignores SIGTERM and appends time
                         stamps to stamps.txt each 0.1 s; "clean": with an empty environment

Sessions are files in --state, so they survive the process. OPTIONS has the rest.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from types import SimpleNamespace

# from this folder, wherever it is run
sys.path.append(os.path.dirname(os.path.abspath(__file__)))

from acp_agent_sessions import Agent

# What it can be started with. A flag is False here; the others take a value of the default's kind.
OPTIONS: dict[str, object] = {
    "state": "",  # folder of the sessions; else in TMPDIR
    "log": "",  # append every line received to this file
    "slow_start": 0.0,  # seconds
    "hang_start": False,  # never answer initialize
    "crash_start": -1,  # exit at initialize with this code
    "stderr_start": 0,  # so many bytes of error output
    "version": 1,  # protocol version it claims
    "refuse_new": "",  # error of session/new
    "no_resume": False,
    "no_load": False,
    "no_fork": False,
    "no_images": False,
    "no_modes": False,
    "auto": False,  # start in a mode that asks nobody
    "only_auto": False,  # offer no other mode either
    "config_modes": False,  # modes as a config option
    "models": "",  # comma-separated, the first is the default
    "efforts": "",  # comma-separated, likewise
    "stay": False,  # do not exit when stdin closes
    "stubborn": False,  # a cancel waits for open questions to be answered
}


def parse(arguments: list[str]) -> SimpleNamespace:
    """The options; a name or value that is not right ends the program with status 2."""
    options = dict(OPTIONS)
    words = iter(arguments)
    for word in words:
        name = word.removeprefix("--").replace("-", "_")
        if name not in OPTIONS or not word.startswith("--"):
            sys.stderr.write(f"unknown option: {word}\n")
            raise SystemExit(2)
        default = OPTIONS[name]
        options[name] = True if default is False else type(default)(next(words))
    return SimpleNamespace(**options)


def main() -> None:
    options = parse(sys.argv[1:])
    agent = Agent(options)

    def terminate(number: int, frame: object) -> None:
        if not agent.untouchable.is_set():
            os._exit(143)

    signal.signal(signal.SIGTERM, terminate)
    if options.stderr_start:
        agent.wire.raw(b"e" * options.stderr_start + b"\n", 2)
    agent.serve()
    while options.stay:
        time.sleep(0.05)


if __name__ == "__main__":
    main()
