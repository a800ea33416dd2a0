"""What the gateway itself says: every notice, refusal and mark, as Markdown. Pure.

Plain words and, where there is one, the next step. Words of people and agents are quoted so that
they can neither ping nor bring markup of their own. It must not know platforms or the store.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Names = Callable[[str], str]  # a person's id to the name others know them by

MISSED_NAMED = 5  # of missed messages
LABEL_WORDS = 60  # characters of a message that stand for it in notices
_MARKS = re.compile(r"([\\`*_\[\]<>~|&$])")  # what is markup anywhere in a line
_BLANKS = re.compile(r"\s+")
_PING = re.compile(r"@(?=\w)")
_INVISIBLE = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")  # would turn the rest around

UNFINISHED = "_(unfinished)_"
EMPTY_ANSWER = "_The agent finished without a word._"
EMPTY_MESSAGE = "There was no text in that message. Say what I should do."
VOICE_UNHEARD = (
    "I cannot listen to voice notes: no transcription service is set up here. "
    "Please send it as text, or with a caption."
)
UNHEARD = "I could not listen to the voice note: {}. Send it again, or write what it says"
VOICE_REMARK = "(A voice note came with this message; the recording could not be read.)"
STRANGER_PRESS = "This is not for you."
UNLISTED_PRESS = "I do not answer in this place. An admin can change that with /whoami."
TAKEN_PRESS = "Taken."
MORE_IN_THREAD = "There is more than fits here. Give the command in a thread with ! before it."
UNKNOWN_PRESS = "This button is no longer in use."
PRESS_BROKE = "That did not work, and nothing was changed; the log of the gateway says more."
TURN_OVER_PRESS = "That turn is over already."
NOT_YOURS_PRESS = "Only the person who asked, or an admin, can do this."
HANDED_OVER = "From the side answer, for the main conversation:"
NO_SIDE_PRESS = "The agent here cannot answer on the side; your message keeps its place."
SIDE_BUSY_PRESS = "A side answer is being written already; your message keeps its place."
FILE_NOT_TAKEN = (
    "The file that came with the command was not taken. "
    "Send it again and write what I should do with it."
)
NOT_TAKEN = "I could not take that message; nothing was started. Please write it differently."
INTERNAL_FAULT = "the gateway met a fault of its own; its log says more"
NOT_STOPPED = "the agent did not end when it was stopped; its session is not used again"
UNREACHED = "the agent could not be reached"
NO_RESULT = "the agent ended without a result"
TOO_LONG = "it took longer than the time limit and was stopped; send it in smaller parts"
TOO_SILENT = "the agent gave no sign of life for too long and was stopped"
DRAINING = "I am restarting. Your message is kept and runs after the restart."


def plain(text: str) -> str:
    """Somebody's words inside a notice: no markup, no ping, one line."""
    line = _INVISIBLE.sub("", _BLANKS.sub(" ", text).strip())
    return _PING.sub("@\u200b", _MARKS.sub(r"\\\1", line))


def label(text: str, most: int = LABEL_WORDS) -> str:
    """The first words of a message, to tell it from others; not yet quoted."""
    line = _BLANKS.sub(" ", text).strip()
    if len(line) <= most:
        return line
    cut = line[: most - 1]
    head, blank, _ = cut.rpartition(" ")
    return (head if blank and len(head) > most // 2 else cut).rstrip(" ,;:") + "…"


def quoted(text: str) -> str:
    """A label as it stands in a notice."""
    return f'"{plain(text)}"' if text.strip() else "a message"


def sentence(reason: str) -> str:
    """A reason as a notice of its own."""
    said = plain(reason)
    said = said[:1].upper() + said[1:]
    return said if said.endswith((".", "!", "?", "…")) else f"{said}."


def duration(ms: int) -> str:
    """How long something takes, in the two largest units that matter."""
    seconds = max(0, ms // 1000)
    if seconds < 60:
        return f"{seconds} s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 60:
        return f"{minutes} min"
    if hours < 48:
        return f"{hours} h" + (f" {minutes % 60} min" if minutes % 60 else "")
    return f"{days} days"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def money(dollars: float) -> str:
    """At least two decimals, and more where it is less than a cent."""
    if dollars and abs(dollars) < 0.01:
        some = f"{dollars:.6f}".rstrip("0")
        return f"${some.ljust(len('0.00'), '0')}"
    return f"${dollars:.2f}"


def ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ending}"


def listing(entries: Sequence[str], most: int = 10) -> str:
    """What is quoted already, as a list; the rest is counted."""
    lines = [f"- {entry}" for entry in entries[:most]]
    if len(entries) > most:
        lines.append(f"- and {len(entries) - most} more")
    return "\n".join(lines)


# Failures, and what did not arrive -------------------------------------------------------


def in_a_thread(name: str) -> str:
    """For a command about a conversation that was given where none is; plain text."""
    return (
        f"That is about one conversation, and there is none here. Write !{name} in its thread; "
        "to begin a conversation, mention me."
    )


def failed(what: str, error: str, *, again: bool = True) -> str:
    """A turn that failed; ``error`` is in plain words and may come from the engine.

    Without ``again`` the reason says itself what to do: sending it again would only fail again.
    """
    reason = label(error, 400)
    said = f"{quoted(what)} failed" + (f": {plain(reason)}" if reason else ".")
    if said[-1] not in ".!?…":
        said += "."
    return f"{said} The thread is free: send it again, or something else." if again else said


def missed(
    number: int, oldest: int, newest: int, labels: Sequence[str], *, restored: bool = False
) -> str:
    """Messages that came while nobody listened; ``oldest`` and ``newest``: ms ago.

    ``restored``: a backup was restored since, so some may have been answered and forgotten.
    """
    came = "It came" if number == 1 else "They came"
    when = f"{duration(newest)} ago"
    if duration(oldest) != duration(newest):
        when = f"between {duration(oldest)} and {duration(newest)} ago"
    missing = f"While I was away I missed {count(number, 'message')} here"
    if restored:
        missing = f"A backup was restored, so I do not remember {count(number, 'message')} here"
    said = f"{missing}. {came} {when} and will not run"
    named = [quoted(label(one)) for one in labels if one.strip()]
    if not named:
        return f"{said}. Send again what still matters."
    rest = number - len(named[:MISSED_NAMED])
    more = [f"and {rest} more"] if rest > 0 else []
    listed = "\n".join(f"- {one}" for one in (*named[:MISSED_NAMED], *more))
    return f"{said}:\n{listed}\n\nSend again what still matters."


def too_big(name: str, limit: int) -> str:
    """A file that the platform does not hand out. Not yet quoted."""
    return (
        f'the file "{label(name)}" is too large for me, the limit here is {limit // 1_000_000} MB; '
        "nothing was started: send a smaller file, or a link"
    )


def not_sent(name: str) -> str:
    """A file of the agent that may not leave."""
    return f"The agent offered the file {quoted(name)}, which is not in its workspace: not sent."


def empty_file(name: str) -> str:
    return f"The file {quoted(name)} is empty, so there is nothing to send."


def not_copied(name: str, reason: str) -> str:
    return f"The file {quoted(name)} could not be sent ({reason}). It lies in the workspace."


def too_big_to_send(name: str, limit: int) -> str:
    return (
        f"The file {quoted(name)} is larger than {limit // 1_000_000} MB, the limit here. "
        "It lies in the workspace."
    )


def thread_gone(title: str, what: str) -> str:
    """For the person, in a direct message, when the thread cannot be written to any more."""
    where = f"the thread {quoted(title)}" if title.strip() else "the thread where you asked"
    return (
        f"I cannot write in {where}: it is closed or deleted, or I may not write there. "
        f"So the answer to {quoted(what)} stays unsaid; /again shows it once I can."
    )


def not_shown(what: str, error: str) -> str:
    """An answer that the platform refused, for a reason that is about the answer itself."""
    reason = plain(label(error, 200)).rstrip(".")
    return (
        f"The answer to {quoted(what)} could not be shown here ({reason}). "
        "/again tries once more, or ask for it in another form."
    )


def file_not_shown(name: str, error: str) -> str:
    """A file of the agent that the platform refused; its answer is another thing."""
    reason = plain(label(error, 200)).rstrip(".")
    return f"The file {quoted(name)} could not be sent here ({reason}). Ask for it in another form."


# The waiting notice -----------------------------------------------------------------------


def waiting_behind(waiting: int, running: str, ms: int, asking: bool = False) -> str:
    """Messages that wait for the lane's running turn."""
    state = "waiting for a decision" if asking else f"running {duration(ms)}"
    return f"Waiting: {count(waiting, 'message')} behind {quoted(running)}, {state}."


def waiting_slot(waiting: int, running: int, place: int) -> str:
    """Messages that wait for a place under the cap."""
    place_words = f", you are {ordinal(place)}" if place else ""
    return (
        f"Waiting: {count(waiting, 'message')}; waiting for a free slot, "
        f"{running} running{place_words}."
    )


def waiting_person(waiting: int, limit: int) -> str:
    run = "runs" if limit == 1 else "run"
    next_one = "it" if limit == 1 else "one"
    return (
        f"Waiting: {count(waiting, 'message')}; {count(limit, 'turn')} of yours {run} already, "
        f"the next starts when {next_one} ends."
    )


def waiting_folder(waiting: int) -> str:
    return (
        f"Waiting: {count(waiting, 'message')}; another thread is working in the same folder, "
        "this one goes on after it."
    )


def waiting_paused(waiting: int, *, here: bool = True, everywhere: bool = False) -> str:
    """``here``: this thread is paused itself; ``everywhere``: all are."""
    kept = "It is kept, and runs" if waiting == 1 else "They are kept, and run"
    how = " and ".join(["/resume"] * here + ["/resume all"] * everywhere)
    when = f"when an admin sends {how}" if how else "when an admin lets the engine go on"
    return f"Waiting: {count(waiting, 'message')}; paused. {kept} {when}."


def waiting_restart(waiting: int) -> str:
    return f"Waiting: {count(waiting, 'message')}; I am restarting, and they run right after."


# Shown with an answer ---------------------------------------------------------------------


def unfinished(text: str) -> str:
    """What an answer looked like when its turn ended early."""
    return f"{text.rstrip()}\n\n{UNFINISHED}" if text.strip() else UNFINISHED


def cut_short(text: str) -> str:
    """The beginning of an answer that is too long for a chat."""
    return f"{text.rstrip()} …\n\n_(The answer goes on; all of it is in the file below.)_"


def own_turn_of_piece(what: str) -> str:
    """The remark for the agent when a piece came after its message had started."""
    return f'(This belongs to the earlier message "{label(what)}"; it arrived late.)'


def not_fetched(name: str) -> str:
    """A file that the platform would not give. Not yet quoted."""
    return (
        f'the file "{label(name)}" could not be fetched; nothing was started: '
        "send the file again in a minute"
    )


def goes_on(what: str) -> str:
    """A turn that a restart cut off, where it is continued without asking."""
    return f"A restart cut off the work on {quoted(what)}. I go on from there now."
