"""A scripted Codex: speaks what its ``app-server`` speaks, and the prompt is its script.

Run it by its path: ``LANEWAY_CODEX_COMMAND="python tests/fakes/codex_agent.py --state DIR"``. It
uses little of the standard library and nothing else. What it says is what the real program was
seen to say; ``tests/engines/test_codex_real.py`` holds the two against each other.

Each line of the prompt is a directive; any other line is answered by ``echo[N]: LINE`` in word
pieces, N being the number of earlier turns of the thread:

    /say TEXT            a piece of the answer          /think TEXT     a thought
    /whole TEXT          a message that was not streamed
    /stream N [SECONDS]  N pieces "w0 w1 …"             /flood N        N pieces at full speed
    /sleep SECONDS       obeys an interruption          /hang           for ever; obeys as well
    /run COMMAND         asks where it was told to, then "ran: …" or "denied"
    /more JSON           asks for a command with these fields beside   /big-run SIZE
    /quiet COMMAND       a command it does not ask about   /fail COMMAND   one that fails
    /withdraw COMMAND    asks, then takes it back
    /write NAME TEXT     a change of a file, after asking
    /patch JSON          a change of these files, after asking         /unseen   of unknown ones
    /grant PATH          a change that asks for more than itself
    /permissions JSON    asks for these
    /mcp SERVER TOOL     calls a server's tool, after asking     /form   asks a server's question
    /ask JSON            asks the person these questions         /later JSON   without waiting
    /read TOOL JSON      calls one of the client's own tools
    /tokens IN OUT       of this turn                   /total IN OUT   sets the thread's totals
    /error KIND TEXT     the turn fails                 /status N KIND  fails with an HTTP status
    /limit UNIXTIME      tells that the account's limit is reached
    /retry               the service is tried again     /broke-off      ends as interrupted
    /other TEXT          what another thread says
    /settings            what the turn was started with, as text
    /args  /pid  /turns  /cwd  /env [NAME]              as text
    /crash [CODE]        exits at once                  /kill           SIGKILL to itself
    /exit-after [CODE]   exits after the answer         /late TEXT      works by itself afterwards
    /line BYTES          a command's output, one line of that size    /long-line BYTES  no output
    /stderr BYTES        to the error output            /badline        lines that are no message
    /halfline            half a message, then exit      /unknown        messages nobody knows
    /deaf                interruptions are ignored      /ignore-term    so are TERM and stdin's end
    /spawn SECONDS       a child in a session of its own that ignores TERM

A message that is put in cuts short what it is doing at the next pause, and is obeyed instead.
Threads are files in --state, so they survive the process.
"""

from __future__ import annotations

import os
import sys

sys.path.append(os.path.dirname(os.path.abspath(__file__)))

from codex_agent_turn import Agent
from scripted import begin, live

VALUES = {"-c", "--state", "--log", "--slow-start", "--crash-start", "--stderr-start"}
FLAGS = {
    "app-server",
    "--hang-start",
    "--signed-out",
    "--old",  # knows no set of permissions
    "--silent",  # tells nothing of itself
    "--no-sandbox",  # cannot run anything in it
    "--no-features",  # does not say what is switched off
    "--disobedient",  # runs commands although they are switched off
    "--no-steer",  # refuses every message to a running turn
    "--forgetful",  # never says what became of one
    "--stay",  # does not exit when stdin ends
}


def parse(arguments: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Options, and settings by their name."""
    options: dict[str, str] = {}
    settings: dict[str, str] = {}
    words = iter(arguments)
    for word in words:
        if word == "-c":
            key, _, value = next(words).partition("=")
            settings[key] = value
        elif word in VALUES:
            options[word] = next(words)
        elif word in FLAGS:
            options[word] = "yes"
        else:
            sys.stderr.write(f"error: unexpected argument '{word}' found\n")
            raise SystemExit(2)
    return options, settings


def main() -> None:
    options, settings = parse(sys.argv[1:])
    begin(options.get("--log", ""), options)
    agent = Agent(options, settings)
    live(agent, options)
    os._exit(0)


if __name__ == "__main__":
    main()
