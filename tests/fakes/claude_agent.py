"""A scripted Claude Code: speaks its stream of JSON, and the prompt is its script.

Run it by its path: ``LANEWAY_CLAUDE_COMMAND="python tests/fakes/claude_agent.py --state DIR"``. It
uses little of the standard library and nothing else. What it says is what the real program was
seen to say; ``tests/engines/test_claude_real.py`` holds the two against each other.

Each line of the prompt is a directive; any other line is answered by ``echo[N]: LINE`` in word
pieces, N being the number of earlier turns of the session:

    /say TEXT            a piece of the answer          /think TEXT     a thought
    /whole TEXT          a message that was not streamed
    /stream N [SECONDS]  N pieces "w0 w1 …"             /flood N        N pieces at full speed
    /sleep SECONDS       obeys an interruption          /hang           for ever; obeys as well
    /tool NAME JSON      a tool it calls harmless       /fail NAME JSON one that fails
    /use NAME JSON       asks, then "ran: …" or "denied: WHY"; the lines after it are still done
    /run COMMAND         the same with Bash             /withdraw COMMAND  asks, then takes it back
    /write NAME TEXT     a file, if it has the tool, after asking
    /big-use SIZE        asks for a command of so many characters
    /cost DOLLARS [IN OUT]  of this turn                /total DOLLARS  sets the session's total
    /error STATUS TEXT   the service fails              /broken TEXT    the turn fails by itself
    /limit UNIXTIME      tells that the account's limit is reached
    /steps               the limit of steps is reached  /retry          the service is tried again
    /nested TEXT         what an agent says that it started
    /args  /pid  /turns  /cwd  /blocks  /env [NAME]     what it is asked for, as text
    /crash [CODE]        exits at once                  /kill           SIGKILL to itself
    /exit-after [CODE]   exits after the answer         /late TEXT      works by itself afterwards
    /line BYTES          a tool's result, one line of that size         /long-line BYTES  no result
    /stderr BYTES        to the error output            /badline        lines that are no message
    /halfline            half a message, then exit      /unknown        messages nobody knows
    /deaf                interruptions are ignored      /ignore-term    so are TERM and stdin's end
    /spawn SECONDS       a child in a session of its own that ignores TERM

A message that comes while it works is put in at the next tool or sleep ("steered: TEXT"), else it
is answered as a turn of its own. Sessions are files in --state, so they survive the process.
"""

from __future__ import annotations

import os
import sys

sys.path.append(os.path.dirname(os.path.abspath(__file__)))

from claude_agent_turn import Agent
from scripted import begin, live

VALUES = {  # options with a value, as the real program takes them
    *("--output-format", "--input-format", "--permission-mode", "--permission-prompt-tool"),
    *("--resume", "--session-id", "--model", "--effort", "--settings", "--tools", "--mcp-config"),
    *("--disallowedTools", "--allowedTools", "--permission-prompts", "--setting-sources"),
    "--max-budget-usd",  # counts what this process spends, looked at after each step
    *("--state", "--log", "--slow-start", "--crash-start", "--stderr-start"),
}
FLAGS = {
    *("-p", "--verbose", "--include-partial-messages", "--strict-mcp-config", "--fork-session"),
    "--no-session-persistence",
    "--plain",  # an old one: no lifecycle, no ids in results, totals only
    "--old",  # the same, and it does not know options of today
    "--hang-start",
    "--signed-out",
    "--forgetful",  # takes a message in and never says what became of it
    "--stay",  # does not exit when stdin ends
}


def parse(arguments: list[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    words = iter(arguments)
    for word in words:
        key, equals, value = word.partition("=")
        if key == "--permission-prompts" and "--old" in options:
            sys.stderr.write(f"error: unknown option '{key}'\n")
            raise SystemExit(1)
        if key in VALUES:
            options[key] = value if equals else next(words)
        elif word in FLAGS:
            options[word] = "yes"
            options |= {"--plain": "yes"} if word == "--old" else {}
        else:
            sys.stderr.write(f"error: unknown option '{word}'\n")
            raise SystemExit(1)
    return options


def main() -> None:
    if "--version" in sys.argv:
        sys.stdout.write("2.1.332 (Claude Code)\n")
        return
    options = parse(sys.argv[1:])
    begin(options.get("--log", ""), options)
    agent = Agent(options)
    live(agent, options)
    os._exit(agent.exit_code)


if __name__ == "__main__":
    main()
