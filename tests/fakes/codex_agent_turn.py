"""What the scripted Codex does: requests of the client, and one small function a directive."""

from __future__ import annotations

import json
import os
import queue
import threading
from typing import Any

from codex_agent_wire import GREETING, Refused, Thread, Wire, models, opened
from scripted import Directives, Kept, name


class Interrupted(Exception):
    """The client interrupted the turn."""


class PutIn(Exception):
    """A message was put into the turn."""


class Failed(Exception):
    """The turn ends so."""

    def __init__(self, status: str, error: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.status, self.error = status, error


class Agent(Directives):
    """One process, with one thread after the other."""

    def __init__(self, options: dict[str, str], settings: dict[str, str]) -> None:
        self.options, self.settings = options, settings
        self.wire = Wire(options.get("--log", ""))
        self.kept = Kept(options.get("--state", "."))
        self.threads: dict[str, Thread] = {}
        self._woken = threading.Condition()
        self._interrupted = False
        self._put_in: list[str] = []
        self._turns: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._answers: dict[int, queue.Queue[dict[str, Any]]] = {}
        self._asked = 0
        self._open: dict[str, str] | None = None  # the message that is being streamed
        self.turn = ""  # that runs
        self.told: dict[str, Any] = {}  # what it was started with

    # Serving ----------------------------------------------------------------------------------

    def serve(self) -> None:
        listening = (self.hear, self.over)
        threading.Thread(target=self.wire.listen, args=listening, daemon=True).start()
        while (told := self._turns.get()) is not None:
            self.run(told)

    def over(self) -> None:
        """The input ended, and with it the program, whatever it is doing."""
        if not self.untouchable and "--stay" not in self.options:
            os._exit(0)
        self._turns.put(None)

    def hear(self, message: dict[str, Any]) -> None:
        number = message.get("id")
        if "method" not in message:
            if (waiting := self._answers.get(number or 0)) is not None:
                waiting.put(message.get("result") or {"error": message.get("error")})
        elif number is not None:
            try:
                result = self.requested(message["method"], message["params"])
            except Refused as refused:
                self.wire.refuse(number, refused)
            else:
                if result is not None:
                    self.wire.answer(number, result)
                if self.told and not self.turn:  # it is answered before it begins
                    self.turn = self.told["turn"]
                    self._turns.put(self.told)

    def requested(self, method: str, told: dict[str, Any]) -> dict[str, Any] | None:
        match method:
            case "initialize":
                return None if "--hang-start" in self.options else dict(GREETING)
            case "config/read" | "account/read" | "model/list" if "--silent" in self.options:
                raise Refused(f"unknown method {method}")
            case "model/list":
                return models()
            case "config/read":
                servers = {"own": {"command": "own"}}
                return {"config": {"model": None, "mcp_servers": servers}}
            case "account/read":
                out = "--signed-out" in self.options
                return {"account": None if out else {"type": "apiKey"}, "requiresOpenaiAuth": out}
            case "experimentalFeature/list":
                on = self.settings.get("features.shell_tool") != "false"
                known = [] if "--no-features" in self.options else ["shell_tool"]
                return {"data": [{"name": one, "enabled": on} for one in known]}
            case "thread/start" | "thread/resume" | "thread/fork":
                return self.opened(method, told)
            case "command/exec" if "--no-sandbox" in self.options:
                return {"exitCode": 1, "stdout": "", "stderr": "bwrap: no permissions"}
            case "command/exec":
                return {"exitCode": 0, "stdout": "", "stderr": ""}
            case "thread/read":
                return {"thread": {"id": told["threadId"]}}
            case "turn/start" | "thread/compact/start":
                self._interrupted, self._put_in = False, []
                self.told = {**told, "turn": f"turn-{name()}", "compact": method != "turn/start"}
                return {} if self.told["compact"] else {"turn": {"id": self.told["turn"]}}
            case "turn/steer":
                return self.steered(told)
            case "turn/interrupt":
                self.wake(interrupted=not self.deaf)
                return {}
            case "thread/backgroundTerminals/clean":
                return {}
            case _:
                raise Refused(f"unknown method {method}")

    def opened(self, method: str, told: dict[str, Any]) -> dict[str, Any]:
        thread = Thread(self.kept, told, keep=not told.get("ephemeral"))
        if method != "thread/start":
            content = self.kept.load(told["threadId"])
            if content is None:
                raise Refused(f"no rollout found for thread id {told['threadId']}")
            thread.take_over(content)
            thread.id = told["threadId"] if method == "thread/resume" else thread.id
        self.threads[thread.id] = thread
        return opened(thread, old="--old" in self.options)

    def steered(self, told: dict[str, Any]) -> dict[str, Any] | None:
        if "--no-steer" in self.options or told["expectedTurnId"] != self.turn:
            raise Refused("no active turn to steer")
        self.wake(put_in=told["input"][-1]["text"])
        return None if "--forgetful" in self.options else {"turnId": self.turn}

    def wake(self, *, interrupted: bool = False, put_in: str | None = None) -> None:
        with self._woken:
            self._interrupted = self._interrupted or interrupted
            self._put_in += [] if put_in is None else [put_in]
            self._woken.notify_all()
        if interrupted:
            for waiting in self._answers.values():
                waiting.put({})

    # A turn -----------------------------------------------------------------------------------

    def run(self, told: dict[str, Any]) -> None:
        self.thread = self.threads[told["threadId"]]
        self._last = [10, 5]
        self.tell("turn/started", turn={"id": self.turn, "status": "inProgress"})
        status, error = "completed", None
        try:
            text = self.compact() if told["compact"] else told["input"][-1]["text"]
            self.said_by_person(text)
        except Interrupted:
            status = "interrupted"
        except Failed as failed:
            status, error = failed.status, failed.error
        self.end_message()
        self.count()
        self.thread.save()
        if self.late:
            self.wire.hold()
        over, self.turn, self.told = self.turn, "", {}
        self.tell("turn/completed", turn={"id": over, "status": status, "error": error})
        if self.exit_after is not None:
            os._exit(self.exit_after)
        if self.late:
            self.turn = "its own"
            self.tell("turn/started", turn={"id": self.turn, "status": "inProgress"})
            self.streamed(self.late)
            self.late = self.turn = ""
            self.wire.release()

    def said_by_person(self, text: str) -> None:
        self.item("userMessage", content=[{"type": "text", "text": text}])
        try:
            self.obey(text)
        except PutIn:
            self._open = None  # what was coming never ends
            self.thread.said.append(text)
            self.said_by_person(self._put_in.pop(0))
        else:
            self.thread.said.append(text)

    def compact(self) -> str:
        if self.thread.said:
            self.item("contextCompaction")
        self.thread.said = self.thread.said[-1:]
        raise Failed("completed")

    def earlier(self) -> int:
        return len(self.thread.said)

    def pause(self, seconds: float) -> None:
        with self._woken:
            self._woken.wait_for(lambda: self._interrupted or self._put_in, seconds)
            if self._interrupted:
                raise Interrupted
            if self._put_in:
                raise PutIn

    def count(self) -> None:
        self.thread.total = [self.thread.total[at] + self._last[at] for at in (0, 1)]
        usage = self.thread.usage(self._last)
        self.tell("thread/tokenUsage/updated", turnId=self.turn, tokenUsage=usage)

    # Saying something -------------------------------------------------------------------------

    def tell(self, method: str, **params: Any) -> None:
        self.wire.tell(method, threadId=self.thread.id, **params)

    def item(self, kind: str, **fields: Any) -> None:
        """An item that begins and ends at once."""
        self.ended(self.started(kind, **fields))

    def started(self, kind: str, **fields: Any) -> dict[str, Any]:
        if kind != "agentMessage":
            self.end_message()
        item = {"type": kind, "id": f"item-{name()}", **fields}
        self.tell("item/started", turnId=self.turn, item=item)
        return item

    def ended(self, item: dict[str, Any], **fields: Any) -> None:
        self.tell("item/completed", turnId=self.turn, item={**item, **fields})

    def streamed(self, text: str) -> None:
        if self._open is None:
            self._open = self.started("agentMessage", text="")
        self._open["text"] += text
        told = {"turnId": self.turn, "itemId": self._open["id"], "delta": text}
        self.tell("item/agentMessage/delta", **told)

    def end_message(self) -> None:
        if self._open is not None:
            item, self._open = self._open, None
            self.ended(item)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The client's answer to a request; Interrupted when it interrupts instead."""
        number = self.send_ask(method, **params)
        answer = self._answers[number].get()
        del self._answers[number]
        self.tell("serverRequest/resolved", requestId=number)
        if self._interrupted:
            raise Interrupted
        return answer

    def send_ask(self, method: str, **params: Any) -> int:
        number, self._asked = self._asked, self._asked + 1  # the first one is 0
        self._answers[number] = queue.Queue()
        told = {"threadId": self.thread.id, "turnId": self.turn, **params}
        self.wire.ask(number, method, **told)
        return number

    # Directives -------------------------------------------------------------------------------

    def do_sleep(self, rest: str) -> None:
        self.pause(float(rest))

    def do_think(self, rest: str) -> None:
        self.tell("item/reasoning/summaryTextDelta", turnId=self.turn, itemId="r", delta=rest)

    def do_whole(self, rest: str) -> None:
        self.item("agentMessage", text=rest)

    def command(self, command: str, /, **more: Any) -> None:
        if not self.offers("exec_command"):
            return
        shown = {"command": f"/bin/bash -lc '{command}'", "cwd": self.thread.told["cwd"], **more}
        told = {"command": shown["command"], "cwd": shown["cwd"]}
        item = self.started("commandExecution", **told, status="inProgress")
        answer = {"decision": "accept"}
        if self.told["approvalPolicy"] == "untrusted":
            asked = {"kind": "command", "itemId": item["id"], "startedAtMs": 5, **shown}
            answer = self.ask("item/commandExecution/requestApproval", **asked)
        allowed = answer.get("decision") == "accept"
        self.ended(item, status="completed" if allowed else "declined", exitCode=0)
        self.streamed(f"ran: {command} " if allowed else "denied ")

    def do_run(self, rest: str) -> None:
        self.command(rest)

    def do_more(self, rest: str) -> None:
        self.command("make tea", **json.loads(rest))

    def do_big_run(self, rest: str) -> None:
        self.command("x" * int(rest))

    def do_quiet(self, rest: str) -> None:
        self.item("commandExecution", command=rest, status="completed", exitCode=0)

    def do_fail(self, rest: str) -> None:
        self.item("commandExecution", command=rest, status="failed", exitCode=1)

    def do_withdraw(self, rest: str) -> None:
        item = self.started("commandExecution", command=rest)
        told = {"itemId": item["id"], "command": rest, "cwd": self.thread.told["cwd"]}
        number = self.send_ask("item/commandExecution/requestApproval", **told)
        self.tell("serverRequest/resolved", requestId=number)

    def offers(self, tool: str) -> bool:
        """Whether there is a machine to use the tool on."""
        offered = "--disobedient" in self.options or self.told.get("environments") != []
        if not offered:
            self.streamed(f"unsupported call: {tool} ")
        return offered

    def change(self, changes: Any, **more: Any) -> bool:
        if not self.offers("apply_patch"):
            return False
        item = self.started("fileChange", changes=changes, status="inProgress")
        told = {"itemId": item["id"], "reason": None, "grantRoot": None, **more}
        answer = self.ask("item/fileChange/requestApproval", **told)
        allowed = answer.get("decision") == "accept"
        self.ended(item, status="completed" if allowed else "declined")
        self.streamed("changed " if allowed else "denied ")
        return allowed

    def do_write(self, rest: str) -> None:
        file, _, text = rest.partition(" ")
        path = os.path.join(self.thread.told["cwd"], file)
        if self.change([{"path": path, "kind": {"type": "add"}, "diff": f"{text}\n"}]):
            with open(path, "w") as written:
                written.write(text)

    def do_patch(self, rest: str) -> None:
        self.change(json.loads(rest))

    def do_unseen(self, rest: str) -> None:
        answer = self.ask("item/fileChange/requestApproval", itemId="never told")
        self.streamed(f"{answer.get('decision')} ")

    def do_grant(self, rest: str) -> None:
        self.change([{"path": "a", "kind": {"type": "add"}, "diff": "x\n"}], grantRoot=rest)

    def do_permissions(self, rest: str) -> None:
        wanted = json.loads(rest)
        told = {"itemId": "p", "cwd": self.thread.told["cwd"], "permissions": wanted}
        answer = self.ask("item/permissions/requestApproval", **told, reason="I want to")
        self.streamed(json.dumps(answer))

    def do_mcp(self, rest: str) -> None:
        server, _, tool = rest.partition(" ")
        item = self.started("mcpToolCall", server=server, tool=tool, arguments={"a": 1})
        meta = {"codex_approval_kind": "mcp_tool_call", "persist": ["session"]}
        meta |= {"tool_title": tool, "tool_params": {"a": 1}}
        message = f'Allow the {server} MCP server to run tool "{tool}"?'
        told = {"serverName": server, "mode": "form", "message": message, "_meta": meta}
        schema = {"type": "object", "properties": {}}
        answer = self.ask("mcpServer/elicitation/request", **told, requestedSchema=schema)
        allowed = answer.get("action") == "accept"
        self.ended(item, status="completed" if allowed else "failed")
        self.streamed(f"called {tool} " if allowed else "denied ")

    def do_form(self, rest: str) -> None:
        told = {"serverName": "laneway", "mode": "form", "message": "your name?"}
        self.streamed(str(self.ask("mcpServer/elicitation/request", **told).get("action")))

    def do_ask(self, rest: str) -> None:
        told = {"itemId": "q", "questions": json.loads(rest)}
        self.streamed(json.dumps(self.ask("item/tool/requestUserInput", **told)))

    def do_later(self, rest: str) -> None:
        self.item("agentMessage", text="", questions=json.loads(rest))

    def do_read(self, rest: str) -> None:
        tool, _, given = rest.partition(" ")
        if tool not in self.thread.tools:
            self.streamed(f"unsupported call: {tool} ")
            return
        item = self.started("dynamicToolCall", tool=tool, arguments=json.loads(given))
        told = {"callId": item["id"], "tool": tool, "arguments": json.loads(given)}
        answer = self.ask("item/tool/call", **told)
        self.ended(item, status="completed", success=answer["success"])
        self.streamed(answer["contentItems"][0]["text"])

    def do_tokens(self, rest: str) -> None:
        self._last = [int(word) for word in rest.split()]

    def do_total(self, rest: str) -> None:
        self.count()
        self.thread.total = [int(word) for word in rest.split()]

    def do_error(self, rest: str) -> None:
        kind, _, text = rest.partition(" ")
        raise Failed("failed", {"message": text, "codexErrorInfo": kind})

    def do_status(self, rest: str) -> None:
        status, _, kind = rest.partition(" ")
        info = {kind or "responseTooManyFailedAttempts": {"httpStatusCode": int(status)}}
        error = {"message": f"unexpected status {status}", "codexErrorInfo": info}
        self.tell("error", turnId=self.turn, error=error, willRetry=False)
        raise Failed("failed")

    def do_limit(self, rest: str) -> None:
        limits = {"primary": {"usedPercent": 100, "resetsAt": int(rest)}, "secondary": None}
        self.wire.tell("account/rateLimits/updated", rateLimits=limits)

    def do_retry(self, rest: str) -> None:
        error = {"message": "Reconnecting... 1/5", "codexErrorInfo": "other"}
        self.tell("error", turnId=self.turn, error=error, willRetry=True)

    def do_broke_off(self, rest: str) -> None:
        raise Failed("interrupted")

    def do_other(self, rest: str) -> None:
        told = {"turnId": "t", "itemId": "i", "delta": rest}
        self.wire.tell("item/agentMessage/delta", threadId="another", **told)
        self.tell("item/agentMessage/delta", **told)

    def do_settings(self, rest: str) -> None:
        self.streamed(json.dumps({**self.told, "input": None}))

    def do_line(self, rest: str) -> None:
        item = self.started("commandExecution", command="cat big")
        self.ended(item, status="completed", aggregatedOutput="x" * int(rest))

    def do_long_line(self, rest: str) -> None:
        self.wire.put({"id": "x" * int(rest), "result": {}})

    def do_badline(self, rest: str) -> None:
        self.wire.raw(b'a log line\n[1, 2]\n{"method": 7}\n{}\n\n' + b"[" * 100000 + b"\n\xff\n")

    def do_halfline(self, rest: str) -> None:
        self.wire.raw(b'{"method":"turn/compl')
        os._exit(0)

    def do_unknown(self, rest: str) -> None:
        self.tell("thread/novelty", turnId=self.turn, thing=1)
        self.tell("item/started", turnId=self.turn, item={"type": "novelty", "id": "n"})
        self.wire.answer(4711, {})
        self.ask("novelty/ask", thing=1)
