"""What the scripted Claude Code does in a turn: one small function a directive."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from typing import Any

from claude_agent_wire import TOOLS, Session, Wire, hand_shake
from scripted import Directives, name


class Interrupted(Exception):
    """The client interrupted the turn."""


class Failed(Exception):
    """The turn ends with this result."""

    def __init__(self, **result: Any) -> None:
        super().__init__()
        self.result = result


class Agent(Directives):
    """One process with one session."""

    def __init__(self, options: dict[str, str]) -> None:
        self.options = options
        self.plain = "--plain" in options
        self.wire = Wire(options.get("--log", ""))
        self.exit_code = 0
        self._interrupted = threading.Event()
        self._prompts: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._answers: dict[str, queue.Queue[dict[str, Any]]] = {}
        self._queued: list[dict[str, Any]] = []
        self._covers: list[str] = []
        self._cost, self._cost_told, self._tokens = 0.0, 0.0, (10, 5)
        self._cap = float(options.get("--max-budget-usd", "inf"))
        self._open = False  # a message is being streamed
        keep = "--no-session-persistence" not in options
        number = options.get("--session-id") or options.get("--resume", "")
        self.session = Session(options.get("--state", "."), number, keep)
        self.wire.session = number
        if servers := options.get("--mcp-config"):
            with open(servers) as file:
                json.load(file)
        tools = options["--tools"].split(",") if "--tools" in options else TOOLS
        off = options.get("--disallowedTools", "").split(",")
        self.tools = [tool for tool in tools if tool not in off]

    # Serving ----------------------------------------------------------------------------------

    def serve(self) -> None:
        known = self.options.get("--resume", "")
        if known and not self.session.load(known):
            words = f"No conversation found with session ID: {known}"
            sys.stderr.write(words + "\n")
            self.wire.send(
                "result", subtype="error_during_execution", is_error=True, errors=[words]
            )
            os._exit(1)
        listening = threading.Thread(
            target=self.wire.listen, args=(self.hear, lambda: self._prompts.put(None)), daemon=True
        )
        listening.start()
        while (prompt := self._prompts.get()) is not None:
            self._queued = [one for one in self._queued if one is not prompt]
            self.turn(prompt)

    def hear(self, message: dict[str, Any]) -> None:
        kind = message.get("type")
        if kind == "user":
            self._queued.append(message)
            self.lifecycle(message["uuid"], "queued")
            self._prompts.put(message)
        elif kind == "control_response":
            response = message["response"]
            if (waiting := self._answers.get(response["request_id"])) is not None:
                waiting.put(response)
        elif kind == "control_request":
            self.control(message["request_id"], message["request"])

    def control(self, number: str, request: dict[str, Any]) -> None:
        match request["subtype"]:
            case "initialize" if "--hang-start" in self.options:
                return
            case "initialize":
                self.reply(number, hand_shake("--signed-out" in self.options, self.plain))
            case "interrupt":
                if not self.deaf:
                    self._interrupted.set()
                    for waiting in self._answers.values():
                        waiting.put({})
                self.reply(number, {"still_queued": []})
            case "cancel_async_message":
                wanted = request["message_uuid"]
                found = [one for one in self._queued if one["uuid"] == wanted]
                self._queued = [one for one in self._queued if one["uuid"] != wanted]
                if found:
                    self.lifecycle(wanted, "cancelled")
                self.reply(number, {"cancelled": bool(found)})
            case "get_usage" if not self.plain:
                total = self.session.total + self._cost
                self.reply(number, {"session": {"total_cost_usd": total}})
            case _:
                answer = {"subtype": "error", "request_id": number, "error": "unknown"}
                self.wire.send("control_response", response=answer)

    def reply(self, number: str, response: dict[str, Any]) -> None:
        answer = {"subtype": "success", "request_id": number, "response": response}
        self.wire.send("control_response", response=answer)

    def lifecycle(self, number: str, state: str) -> None:
        if not self.plain and not ("--forgetful" in self.options and state != "queued"):
            self.wire.send("command_lifecycle", command_uuid=number, state=state)

    # A turn -----------------------------------------------------------------------------------

    def turn(self, prompt: dict[str, Any]) -> None:
        if prompt.get("put in"):
            return  # it is part of an earlier turn already
        self._interrupted.clear()
        self._cost, self._tokens = 0.0, (10, 5)
        self._covers = [prompt["uuid"]]
        content = prompt["message"]["content"]
        text = content if isinstance(content, str) else content[-1]["text"]
        self.lifecycle(prompt["uuid"], "started")
        model = self.options.get("--model", "claude-opus-9")
        self.wire.send("system", subtype="init", model=model, tools=self.tools, cwd=os.getcwd())
        result: dict[str, Any] = {"subtype": "success", "is_error": False, "result": "done"}
        result["terminal_reason"] = "completed"
        try:
            self.script(text, content)
        except Interrupted:
            self.session.said.append(text)
            result = {"subtype": "error_during_execution", "is_error": True}
            result |= {"terminal_reason": "aborted_tools", "errors": ["[ede_diagnostic] x"]}
        except Failed as failed:
            result |= failed.result
        else:
            self.session.said.append(text)
        self.end_message()
        self.session.total, self._cost_told = round(self.session.total + self._cost, 6), self._cost
        self._cost = 0.0
        self.session.save()
        if self.late:
            self.wire.hold()
        self.result(result)
        if self.exit_after is not None:
            os._exit(self.exit_after)
        if self.late:
            self.streamed(self.late)
            self.end_message()
            self.wire.send("result", subtype="success", is_error=False, result=self.late)
            self.late = ""
            self.wire.release()

    def result(self, result: dict[str, Any]) -> None:
        came, went = self._tokens
        fields = {
            "total_cost_usd": self.session.total,
            "usage": {"input_tokens": came, "output_tokens": went},
            **result,
        }
        if not self.plain:
            used = {"inputTokens": came, "outputTokens": went, "costUSD": self._cost_told}
            fields["model_usage_since_last_result"] = {"claude-opus-9": used}
            fields["user_message_uuids"] = self._covers
        self.wire.send("result", **fields)
        for number in self._covers:
            self.lifecycle(number, "cancelled" if result["is_error"] else "completed")

    def script(self, text: str, content: Any) -> None:
        if text == "/clear":
            self.wire.send("conversation_reset", new_conversation_id=name())
            return
        if text.startswith("/compact"):
            self.compact()
            return
        self._content = content
        self.obey(text)

    def earlier(self) -> int:
        return len(self.session.said)

    def do_blocks(self, rest: str) -> None:
        self.streamed(json.dumps(self._content))

    def compact(self) -> None:
        if not self.session.said:
            self.do_whole("Error: No messages to compact")
            return
        self.wire.send("system", subtype="status", status="compacting")
        sizes = {"trigger": "manual", "pre_tokens": 12000, "post_tokens": 900}
        self.session.said = self.session.said[-1:]
        self.wire.send("system", subtype="compact_boundary", compact_metadata=sizes)

    # Saying something -------------------------------------------------------------------------

    def event(self, **event: Any) -> None:
        self.wire.send("stream_event", event=event, parent_tool_use_id=None)

    def streamed(self, text: str, kind: str = "text") -> None:
        if not self._open:
            self._open = True
            self._message = f"msg_{name()}"
            usage = {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 1}
            self.event(type="message_start", message={"id": self._message, "usage": usage})
            self._text = ""
        self._text += text if kind == "text" else ""
        self.event(type="content_block_delta", delta={"type": f"{kind}_delta", kind: text})

    def end_message(self, reason: str = "end_turn") -> None:
        if self._open:
            self._open = False
            block = {"type": "text", "text": self._text}
            self.wire.send("assistant", message={"id": self._message, "content": [block]})
            delta = {"stop_reason": reason}
            self.event(type="message_delta", delta=delta, usage={"output_tokens": 5})
            self.event(type="message_stop")

    def call(self, tool: str, given: dict[str, Any]) -> str:
        self.end_message("tool_use")
        number = f"toolu_{name()}"
        block = {"type": "tool_use", "id": number, "name": tool, "input": given}
        self.wire.send("assistant", message={"id": "msg_tool", "content": [block]})
        return number

    def done(self, number: str, content: str, *, failed: bool = False) -> None:
        block = {"type": "tool_result", "tool_use_id": number, "content": content}
        block["is_error"] = failed
        self.wire.send("user", message={"role": "user", "content": [block]})
        self.put_in()

    def put_in(self) -> None:
        """Messages that came meanwhile become part of what is being done."""
        if self.plain or "--forgetful" in self.options:
            return
        for message in self._queued:
            message["put in"] = True
            self._covers.append(message["uuid"])
            self.lifecycle(message["uuid"], "started")
            self.streamed(f"steered: {message['message']['content']} ")
        self._queued = []

    def ask(self, tool: str, given: dict[str, Any], number: str) -> dict[str, Any]:
        """What became of a question; {} when it was interrupted."""
        if self.options.get("--permission-prompts") == "none":
            return {"behavior": "deny", "message": "no approval surface in this session"}
        asked = f"ask-{name()}"
        waiting = self._answers[asked] = queue.Queue()
        request = {"subtype": "can_use_tool", "tool_name": tool, "input": given}
        request |= {"tool_use_id": number, "permission_suggestions": [{"type": "setMode"}]}
        self.wire.send("control_request", request_id=asked, request=request)
        answer = waiting.get()
        del self._answers[asked]
        if self._interrupted.is_set():
            self.wire.send("control_cancel_request", request_id=asked)
            raise Interrupted
        return dict(answer.get("response", {}))

    # Directives -------------------------------------------------------------------------------

    def do_think(self, rest: str) -> None:
        self.streamed(rest, "thinking")

    def do_whole(self, rest: str) -> None:
        self.end_message()
        block = {"type": "text", "text": rest}
        self.wire.send("assistant", message={"id": name(), "content": [block]})

    def do_nested(self, rest: str) -> None:
        block = {"type": "text", "text": rest}
        message = {"id": name(), "content": [block]}
        self.wire.send("assistant", message=message, parent_tool_use_id="toolu_task")

    def pause(self, seconds: float) -> None:
        if self._interrupted.wait(seconds):
            raise Interrupted

    def do_sleep(self, rest: str) -> None:
        self.pause(float(rest))
        self.put_in()

    def do_tool(self, rest: str) -> None:
        tool, _, given = rest.partition(" ")
        self.done(self.call(tool, json.loads(given or "{}")), "fine")

    def do_fail(self, rest: str) -> None:
        tool, _, given = rest.partition(" ")
        self.done(self.call(tool, json.loads(given or "{}")), "no", failed=True)

    def do_use(self, rest: str) -> None:
        tool, _, given = rest.partition(" ")
        self.use(tool, json.loads(given or "{}"))

    def use(self, tool: str, given: dict[str, Any]) -> bool:
        number = self.call(tool, given)
        if tool not in self.tools:
            self.done(number, f"No such tool available: {tool}", failed=True)
            self.streamed(f"no such tool: {tool} ")
            return False
        answer = self.ask(tool, given, number)
        allowed = answer.get("behavior") == "allow" and answer["updatedInput"] == given
        self.done(number, "fine" if allowed else str(answer.get("message")), failed=not allowed)
        what = given.get("command", tool)
        self.streamed(f"ran: {what} " if allowed else f"denied: {answer.get('message')} ")
        return allowed

    def do_run(self, rest: str) -> None:
        self.use("Bash", {"command": rest, "description": f"run {rest.split(' ')[0]}"})

    def do_big_use(self, rest: str) -> None:
        self.use("Bash", {"command": "x" * int(rest)})

    def do_write(self, rest: str) -> None:
        file, _, text = rest.partition(" ")
        if self.use("Write", {"file_path": os.path.abspath(file), "content": text}):
            with open(file, "w") as written:
                written.write(text)

    def do_withdraw(self, rest: str) -> None:
        asked, given = f"ask-{name()}", {"command": rest}
        request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": given}
        self.wire.send("control_request", request_id=asked, request=request)
        self.wire.send("control_cancel_request", request_id=asked)

    def do_cost(self, rest: str) -> None:
        cost, *tokens = rest.split()
        self._cost = float(cost)
        self._cap -= self._cost
        if self._cap <= 0:
            raise Failed(
                subtype="error_max_budget_usd", is_error=True, terminal_reason="budget_exhausted"
            )
        self._tokens = (int(tokens[0]), int(tokens[1])) if tokens else self._tokens

    def do_total(self, rest: str) -> None:
        self.session.total = float(rest)

    def do_error(self, rest: str) -> None:
        status, _, text = rest.partition(" ")
        block = {"type": "text", "text": text}
        self.end_message()
        self.wire.send(
            "assistant",
            message={"id": name(), "content": [block]},
            is_api_error_message=True,
            error="server_error",
        )
        code = int(status) or None
        raise Failed(is_error=True, result=text, terminal_reason="api_error", api_error_status=code)

    def do_broken(self, rest: str) -> None:
        raise Failed(subtype="error_during_execution", is_error=True, errors=[rest], result=None)

    def do_limit(self, rest: str) -> None:
        info = {"status": "rejected", "resetsAt": int(rest), "rateLimitType": "five_hour"}
        self.wire.send("rate_limit_event", rate_limit_info=info)

    def do_steps(self, rest: str) -> None:
        raise Failed(subtype="error_max_turns", is_error=True, terminal_reason="max_turns")

    def do_retry(self, rest: str) -> None:
        self.wire.send("system", subtype="api_retry", attempt=1, error_status=529)

    def do_line(self, rest: str) -> None:
        number = self.call("Bash", {"command": "cat big"})
        self.done(number, "x" * int(rest))

    def do_long_line(self, rest: str) -> None:
        self.wire.send("system", subtype="thing", thing="x" * int(rest))

    def do_badline(self, rest: str) -> None:
        self.wire.raw(b'a log line\n[1, 2]\n{"type": 7}\n{}\n\n' + b"[" * 100000 + b"\n\xff\xfe\n")

    def do_halfline(self, rest: str) -> None:
        self.wire.raw(b'{"type":"result","subtype":"succ')
        os._exit(0)

    def do_unknown(self, rest: str) -> None:
        self.wire.send("novelty", thing=1)
        self.wire.send("system", subtype="novelty")
        self.wire.send("control_request", request_id="q1", request={"subtype": "novelty"})
        self.wire.send("control_response", response={"request_id": "nobody", "subtype": "success"})
