"""The scripted agent's side of the protocol: its sessions, kept in files, and what it can do."""

from __future__ import annotations

import json
import os
import sys
import threading
import time

from acp_agent_turn import Failed, Turn, Wire, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace
    from typing import Any

MODES = ("default", "read-only", "auto")


class Agent:
    """The agent's side of the protocol."""

    def __init__(self, options: SimpleNamespace) -> None:
        self.options = options
        self.wire: Wire = Wire()
        self.sessions: dict[str, dict[str, Any]] = {}
        self.running: dict[str, Turn] = {}
        self.untouchable = threading.Event()
        self.folder = options.state or os.path.join(os.environ.get("TMPDIR", "/tmp"), "sessions")
        os.makedirs(self.folder, exist_ok=True)

    def path(self, session: str) -> str:
        return os.path.join(self.folder, f"{session}.json")

    def save(self, session: str) -> None:
        draft = f"{self.path(session)}.{os.getpid()}.new"
        write(draft, json.dumps(self.sessions[session]))
        os.replace(draft, self.path(session))

    def create(self, cwd: str, turns: list[Any]) -> str:
        number = sum(name.endswith(".json") for name in os.listdir(self.folder)) + 1
        while os.path.exists(self.path(f"fake-{number:04d}")):
            number += 1
        session = f"fake-{number:04d}"
        mode = "auto" if self.options.auto or self.options.only_auto else "default"
        self.sessions[session] = {"cwd": cwd, "turns": turns, "mode": mode, "cost": 0.0}
        self.save(session)
        return session

    def load(self, session: str, cwd: str) -> dict[str, Any]:
        try:
            with open(self.path(session), encoding="utf-8") as file:
                state = json.load(file)
        except FileNotFoundError:
            raise Failed(-32002, f"no session {session}") from None
        mode = "auto" if self.options.auto or self.options.only_auto else "default"
        self.sessions[session] = {**state, "cwd": cwd, "mode": mode}
        return self.sessions[session]

    def choices(self, session: str) -> dict[str, Any]:
        """Modes, model and effort as the options want them declared."""
        state = self.sessions[session]
        told: dict[str, Any] = {}
        modes = ("auto",) if self.options.only_auto else MODES
        options = []
        if self.options.config_modes:
            options.append(select_option("mode", "mode", modes, state["mode"]))
        elif not self.options.no_modes:
            listed = [{"id": mode, "name": mode} for mode in modes]
            told["modes"] = {"currentModeId": state["mode"], "availableModes": listed}
        for name, category in (("models", "model"), ("efforts", "thought_level")):
            if values := [value for value in getattr(self.options, name).split(",") if value]:
                current = state.get(category, values[0])
                options.append(select_option(category, category, values, current))
        if options:
            told["configOptions"] = options
        return told

    def request(self, number: Any, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        """The result of a request; None when a thread answers it later."""
        session = params.get("sessionId", "")
        match method:
            case "initialize":
                return self.initialize()
            case "session/new":
                if self.options.refuse_new:
                    raise Failed(-32000, self.options.refuse_new)
                session = self.create(params["cwd"], [])
                return {"sessionId": session, **self.choices(session)}
            case "session/resume" if not self.options.no_resume:
                self.load(session, params["cwd"])
                return self.choices(session)
            case "session/load" if not self.options.no_load:
                self.replay(session, self.load(session, params["cwd"]))
                return self.choices(session)
            case "session/fork" if not self.options.no_fork:
                turns = self.load(session, params["cwd"])["turns"]
                fork = self.create(params["cwd"], list(turns))
                return {"sessionId": fork, **self.choices(fork)}
            case "session/set_mode":
                self.sessions[session]["mode"] = params["modeId"]
                return {}
            case "session/set_config_option":
                self.sessions[session][params["configId"]] = params["value"]
                return self.choices(session)
            case "session/prompt":
                self.prompt(number, session, params["prompt"])
                return None
        raise Failed(-32601, f"Method not found: {method}")

    def initialize(self) -> dict[str, Any]:
        time.sleep(self.options.slow_start)
        if self.options.crash_start >= 0:
            os._exit(self.options.crash_start)
        if self.options.hang_start:
            threading.Event().wait()
        able: dict[str, Any] = {}
        if not self.options.no_resume:
            able["resume"] = {}
        if not self.options.no_fork:
            able["fork"] = {}
        return {
            "protocolVersion": self.options.version,
            "agentInfo": {"name": "scripted", "version": "1"},
            "authMethods": [],
            "agentCapabilities": {
                "loadSession": not self.options.no_load,
                "promptCapabilities": {"image": not self.options.no_images},
                "sessionCapabilities": able,
            },
        }

    def replay(self, session: str, state: dict[str, Any]) -> None:
        for said, answered in state["turns"]:
            for kind, text in (("user_message_chunk", said), ("agent_message_chunk", answered)):
                update = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
                params = {"sessionId": session, "update": update}
                self.wire.send({"method": "session/update", "params": params})

    def prompt(self, number: Any, session: str, blocks: list[dict[str, Any]]) -> None:
        if session not in self.sessions:
            raise Failed(-32002, f"no session {session}")
        if session in self.running:
            raise Failed(-32600, "a prompt is running in this session already")
        turn = self.running[session] = Turn(self, number, session, blocks)
        threading.Thread(target=turn.run, daemon=True, name=f"turn {session}").start()

    def notice(self, method: str, params: dict[str, Any]) -> None:
        turn = self.running.get(params.get("sessionId", ""))
        if method == "session/cancel" and turn is not None:
            turn.cancelled.set()

    def serve(self) -> None:
        for line in sys.stdin.buffer:
            if self.options.log:
                with open(self.options.log, "ab") as file:
                    file.write(line)
            message = json.loads(line)
            method, number = message.get("method"), message.get("id")
            if method is None:
                self.wire.settle(message)
            elif number is None:
                self.notice(method, message.get("params") or {})
            else:
                self.reply(number, method, message.get("params") or {})

    def reply(self, number: Any, method: str, params: dict[str, Any]) -> None:
        try:
            result = self.request(number, method, params)
        except Failed as failed:
            error = {"code": failed.code, "message": str(failed)}
            self.wire.send({"id": number, "error": error})
        else:
            if result is not None:
                self.wire.send({"id": number, "result": result})


def select_option(number: str, category: str, values: Any, current: str) -> dict[str, Any]:
    return {
        "id": number,
        "name": number,
        "category": category,
        "type": "select",
        "currentValue": current,
        "options": [{"value": value, "name": value} for value in values],
    }
