"""The words that a setting can be, where there are only a few: one class for each such setting."""

from __future__ import annotations

from enum import StrEnum


class TelegramMode(StrEnum):
    POLL = "poll"
    WEBHOOK = "webhook"


class SlackMode(StrEnum):
    SOCKET = "socket"
    WEBHOOK = "webhook"


class SlackStreams(StrEnum):
    OFF = "off"
    DIRECT = "direct"
    EVERYWHERE = "everywhere"


class EngineName(StrEnum):
    DEMO = "demo"
    ACP = "acp"
    CLAUDE = "claude"
    CODEX = "codex"
    OPENAI = "openai"


class Approvers(StrEnum):
    """Who may press a card's buttons: admins, or also the person who began the turn."""

    ADMINS = "admins"
    STARTER = "starter"


class AfterCrash(StrEnum):
    TELL = "tell"
    CONTINUE = "continue"


class AgentJobs(StrEnum):
    ASK = "ask"
    ALLOW = "allow"


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
