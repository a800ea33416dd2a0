"""Every setting, once: name, reader, default, and what it means, as fields of ``Settings``.

The readers come from ``gateway.values``, the few words that some can be from ``gateway.choices``;
where values come from and what is said about wrong ones is the business of ``gateway.config``.
``.env.example`` is made from this table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import tzinfo
from decimal import Decimal
from pathlib import Path

from core.engines.base import Approvals
from core.turns import Busy
from gateway import values
from gateway.choices import (
    AfterCrash,
    AgentJobs,
    Approvers,
    EngineName,
    LogFormat,
    LogLevel,
    SlackMode,
    SlackStreams,
    TelegramMode,
)
from gateway.setting import Applies, Group, Setting, rows_in
from gateway.values import MailServer, Network, Rate, Secret, SigninLimits

PREFIX = "LANEWAY_"


_ENGINES = ("demo", "acp", "claude", "codex")  # those that are programs

_home = Group("The gateway")
_telegram = Group("Telegram", Applies.RECONNECTS, "telegram")
_slack = Group("Slack", Applies.RECONNECTS, "slack")
_discord = Group("Discord", Applies.RECONNECTS, "discord")
_people = Group("People and places (ids, never user names)")
_engine = Group("Engines")
_approve = Group("Approvals")
_turns = Group("Turns")
_shown = Group("What people see while a turn works")
_jobs = Group("Schedules and watches")
_voice = Group("Voice notes")
_web = Group("Web page, sign-in and mail")
_logs = Group("Logs and metrics")

_channels = values.listed(values.person)
_mails = values.listed(values.mail_address)
_http = values.base_url("http", "https")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings, read and checked. ``Settings()`` is what an empty environment gives."""

    home: Path = _home(
        "LANEWAY_HOME",
        values.folder,
        "~/.laneway",
        "data directory: database, key file, workspaces, attachments",
        Applies.ENVIRONMENT,
    )
    timezone: tzinfo = _home(
        "LANEWAY_TIMEZONE",
        values.zone,
        "",
        "for schedules that name none, and for the days of the budgets; empty: the machine's",
    )

    telegram_token: Secret = _telegram(
        "LANEWAY_TELEGRAM_TOKEN", values.telegram_token, "", "the bot's token, from BotFather"
    )
    telegram_api_base: str = _telegram(
        "LANEWAY_TELEGRAM_API_BASE",
        _http,
        "https://api.telegram.org",
        "where the Bot API is; also how a self-hosted Bot API server is used",
    )
    telegram_mode: TelegramMode = _telegram(
        "LANEWAY_TELEGRAM_MODE",
        values.choice(TelegramMode),
        "poll",
        "poll, or webhook: updates come to /hooks/telegram under LANEWAY_WEB_URL",
    )
    telegram_webhook_secret: Secret = _telegram(
        "LANEWAY_TELEGRAM_WEBHOOK_SECRET",
        values.telegram_hook_secret,
        "",
        "checked on every webhook call; needed in webhook mode",
    )

    slack_bot_token: Secret = _slack(
        "LANEWAY_SLACK_BOT_TOKEN", values.slack_token("xoxb-"), "", "the bot's token (xoxb-…)"
    )
    slack_app_token: Secret = _slack(
        "LANEWAY_SLACK_APP_TOKEN",
        values.slack_token("xapp-"),
        "",
        "the app's token (xapp-…) for Socket Mode",
    )
    slack_api_base: str = _slack(
        "LANEWAY_SLACK_API_BASE",
        values.url("http", "https"),
        "https://slack.com/api/",
        "where Slack's Web API is",
    )
    slack_mode: SlackMode = _slack(
        "LANEWAY_SLACK_MODE",
        values.choice(SlackMode),
        "socket",
        "socket, or webhook: events come to /hooks/slack under LANEWAY_WEB_URL",
    )
    slack_signing_secret: Secret = _slack(
        "LANEWAY_SLACK_SIGNING_SECRET",
        values.secret,
        "",
        "checked on every webhook call; needed in webhook mode",
    )
    slack_streams: SlackStreams = _slack(
        "LANEWAY_SLACK_STREAMS",
        values.choice(SlackStreams),
        "direct",
        "where answers grow word by word: off, direct, or everywhere (docs/slack.md)",
    )

    discord_token: Secret = _discord("LANEWAY_DISCORD_TOKEN", values.secret, "", "the bot's token")
    discord_api_base: str = _discord(
        "LANEWAY_DISCORD_API_BASE",
        _http,
        "https://discord.com/api/v10",
        "where the API is, with its version",
    )
    discord_gateway_url: str = _discord(
        "LANEWAY_DISCORD_GATEWAY_URL",
        values.base_url("ws", "wss"),
        "",
        "where the gateway is; empty: what Discord names",
    )
    discord_auto_thread: bool = _discord(
        "LANEWAY_DISCORD_AUTO_THREAD",
        values.on_off,
        "on",
        "a mention in a text channel opens a thread, which is the lane",
    )

    admins: frozenset[str] = _people(
        "LANEWAY_ADMINS", _channels, "", "comma-separated, like telegram:700000001,slack:U0ANA"
    )
    members: frozenset[str] = _people(
        "LANEWAY_MEMBERS", _channels, "", "comma-separated; nobody else is answered"
    )
    places: frozenset[str] = _people(
        "LANEWAY_PLACES",
        values.listed(values.place),
        "",
        "groups and channels in which members may talk, like telegram:-1001900000001;"
        " threads belong to their parent, direct messages always work",
    )
    bots: frozenset[str] = _people(
        "LANEWAY_BOTS", _channels, "", "other bots that are answered, like telegram:800000002"
    )
    bot_turns: Rate = _people(
        "LANEWAY_BOT_TURNS", values.rate, "5/1m", "how often those bots are answered at most"
    )

    engine: EngineName = _engine(
        "LANEWAY_ENGINE",
        values.choice(EngineName),
        "demo",
        "demo (ships with the project), acp, claude, codex or openai",
    )
    acp_command: tuple[str, ...] = _engine(
        "LANEWAY_ACP_COMMAND",
        values.command,
        "",
        "command line of an ACP agent, e.g. gemini --experimental-acp",
        Applies.RELOADS,
        "acp",
    )
    acp_readonly_mode: str = _engine(
        "LANEWAY_ACP_READONLY_MODE",
        values.text,
        "",
        "the agent's mode in which it can only read; needed for side answers of ACP agents",
        Applies.RELOADS,
        "acp",
    )
    openai_base_url: str = _engine(
        "LANEWAY_OPENAI_BASE_URL",
        _http,
        "",
        "any OpenAI-compatible chat-completions server, like http://127.0.0.1:11434/v1",
        Applies.RELOADS,
        "openai",
    )
    openai_api_key: Secret = _engine(
        "LANEWAY_OPENAI_API_KEY",
        values.secret,
        "",
        "the key of that server, where it wants one",
        Applies.RELOADS,
        "openai",
    )
    openai_model: str = _engine(
        "LANEWAY_OPENAI_MODEL",
        values.text,
        "",
        "the model to ask that server for",
        Applies.RELOADS,
        "openai",
    )
    openai_context: int = _engine(
        "LANEWAY_OPENAI_CONTEXT",
        values.whole(1000, 10_000_000),
        "32000",
        "tokens of a conversation that are sent to that model, by a rough count",
        Applies.RELOADS,
        "openai",
    )
    claude_command: tuple[str, ...] = _engine(
        "LANEWAY_CLAUDE_COMMAND",
        values.command,
        "",
        "Claude Code, with extra arguments if wanted; empty: the one that is found",
        Applies.RELOADS,
        "claude",
    )
    codex_command: tuple[str, ...] = _engine(
        "LANEWAY_CODEX_COMMAND",
        values.command,
        "",
        "Codex, with extra arguments if wanted; empty: codex on the PATH",
        Applies.RELOADS,
        "codex",
    )
    fallback_engine: EngineName | None = _engine(
        "LANEWAY_FALLBACK_ENGINE",
        values.optional(EngineName),
        "",
        "takes over after three failures in a row; the first is tried again every ten minutes",
    )
    engine_env: frozenset[str] = _engine(
        "LANEWAY_ENGINE_ENV",
        values.listed(values.variable),
        "",
        "names of variables handed to engines (HOME, PATH, LANG and TZ always are)",
        Applies.RELOADS,
        *_ENGINES,
    )
    workspace: Path | None = _engine(
        "LANEWAY_WORKSPACE",
        values.maybe_folder,
        "",
        "one folder for every lane that names none; empty: a folder per lane",
    )

    approvals: Approvals = _approve(
        "LANEWAY_APPROVALS",
        values.choice(Approvals),
        "ask",
        "ask, auto (only what the engine itself calls safe goes unasked) or full (nothing asked)",
    )
    approvers: Approvers = _approve(
        "LANEWAY_APPROVERS",
        values.choice(Approvers),
        "admins",
        "who may press a card's buttons: admins, or starter (who began the turn) as well",
    )
    approval_timeout: float = _approve(
        "LANEWAY_APPROVAL_TIMEOUT", values.some_duration, "15m", "then the answer is deny"
    )
    approval_timeout_unattended: float = _approve(
        "LANEWAY_APPROVAL_TIMEOUT_UNATTENDED",
        values.some_duration,
        "12h",
        "the same for turns nobody attends",
    )

    when_busy: Busy = _turns(
        "LANEWAY_WHEN_BUSY",
        values.choice(Busy),
        "queue",
        "a message that arrives in a busy lane: queue, side, steer, interrupt or collect",
    )
    max_turns: int = _turns(
        "LANEWAY_MAX_TURNS", values.whole(), "8", "turns running at once, all lanes"
    )
    max_turns_per_person: int = _turns(
        "LANEWAY_MAX_TURNS_PER_PERSON", values.whole(), "3", "turns of one person at once"
    )
    max_side: int = _turns(
        "LANEWAY_MAX_SIDE", values.whole(0, 4), "1", "side answers at once in a lane (4 in all)"
    )
    budget_person_day: Decimal | None = _turns(
        "LANEWAY_BUDGET_PERSON_DAY", values.money, "", "US dollars a person may spend a day"
    )
    budget_day: Decimal | None = _turns(
        "LANEWAY_BUDGET_DAY", values.money, "", "US dollars that all may spend a day"
    )
    queue_limit: int = _turns(
        "LANEWAY_QUEUE_LIMIT", values.whole(), "20", "waiting messages in one lane"
    )
    turn_idle_timeout: float = _turns(
        "LANEWAY_TURN_IDLE_TIMEOUT",
        values.some_duration,
        "20m",
        "a turn whose engine says nothing for so long is stopped",
    )
    turn_timeout: float = _turns(
        "LANEWAY_TURN_TIMEOUT", values.some_duration, "6h", "a whole turn, asking not counted"
    )
    stop_grace: float = _turns(
        "LANEWAY_STOP_GRACE",
        values.some_duration,
        "4s",
        "from asking an engine to stop to KILL",
        Applies.RELOADS,
        *_ENGINES,
    )
    drain_timeout: float = _turns(
        "LANEWAY_DRAIN_TIMEOUT",
        values.duration,
        "30s",
        "on SIGTERM: time that running turns get to finish",
    )
    after_crash: AfterCrash = _turns(
        "LANEWAY_AFTER_CRASH",
        values.choice(AfterCrash),
        "tell",
        "a turn that ran at a crash: tell its thread (with a button), or continue it once",
        Applies.NEXT_START,
    )

    preview: bool = _shown("LANEWAY_PREVIEW", values.on_off, "on", "live previews")
    receipts: bool = _shown(
        "LANEWAY_RECEIPTS", values.on_off, "on", "a reaction on the person's message"
    )

    min_interval: float = _jobs(
        "LANEWAY_MIN_INTERVAL",
        values.some_duration,
        "10s",
        "least interval of schedules and watches",
    )
    jobs_per_person: int = _jobs(
        "LANEWAY_JOBS_PER_PERSON", values.whole(0), "50", "jobs a person may have"
    )
    agent_jobs: AgentJobs = _jobs(
        "LANEWAY_AGENT_JOBS",
        values.choice(AgentJobs),
        "ask",
        "jobs made by an agent need a person's yes (ask), or not (allow)",
    )
    watch_private: bool = _jobs(
        "LANEWAY_WATCH_PRIVATE", values.on_off, "off", "watches may reach private addresses"
    )
    catch_up: float = _jobs(
        "LANEWAY_CATCH_UP", values.duration, "6h", "how late a missed firing still runs"
    )

    transcribe_url: str = _voice(
        "LANEWAY_TRANSCRIBE_URL", _http, "", "an OpenAI-compatible transcription service"
    )
    transcribe_api_key: Secret = _voice(
        "LANEWAY_TRANSCRIBE_API_KEY", values.secret, "", "the key of that service"
    )
    transcribe_model: str = _voice(
        "LANEWAY_TRANSCRIBE_MODEL", values.text, "", "the model to ask that service for"
    )

    web_host: str = _web(
        "LANEWAY_WEB_HOST",
        values.host,
        "127.0.0.1",
        "where the page listens",
        Applies.ENVIRONMENT,
    )
    web_port: int = _web(
        "LANEWAY_WEB_PORT",
        values.whole(0, 65535),
        "8790",
        "and its port",
        Applies.ENVIRONMENT,
    )
    web_url: str = _web(
        "LANEWAY_WEB_URL",
        values.page_url,
        "",
        "the page's public address, for links and cookies; https makes cookies Secure",
    )
    trusted_proxies: frozenset[Network] = _web(
        "LANEWAY_TRUSTED_PROXIES",
        values.listed(values.network),
        "",
        "addresses or networks; only from these is X-Forwarded-For believed",
    )
    admin_emails: frozenset[str] = _web(
        "LANEWAY_ADMIN_EMAILS", _mails, "", "addresses, or @example.org for a whole domain"
    )
    member_emails: frozenset[str] = _web(
        "LANEWAY_MEMBER_EMAILS", _mails, "", "addresses, or @example.org for a whole domain"
    )
    signin_limits: SigninLimits = _web(
        "LANEWAY_SIGNIN_LIMITS",
        values.signin_limits,
        "code=3/15m,network=20/1h,mail=500/1h,failure=10/10m",
        "how often somebody may try (docs/web.md); a part that is left out limits nothing",
    )
    smtp: MailServer | None = _web(
        "LANEWAY_SMTP_URL",
        values.mail_server,
        "",
        "smtp://user:password@host:587, smtps://…, smtp+plain://localhost:25; without it codes"
        " are printed on the gateway's terminal",
    )
    mail_from: str = _web("LANEWAY_MAIL_FROM", values.mail_sender, "", "the sender of those mails")

    metrics_token: Secret = _logs(
        "LANEWAY_METRICS_TOKEN",
        values.secret,
        "",
        "bearer token for /metrics; without it only signed-in admins see them",
    )
    log_format: LogFormat = _logs(
        "LANEWAY_LOG_FORMAT",
        values.choice(LogFormat),
        "text",
        "text, or json: one object a line",
    )
    log_level: LogLevel = _logs(
        "LANEWAY_LOG_LEVEL", values.choice(LogLevel), "info", "debug, info, warning or error"
    )


def table() -> Iterator[Setting]:
    """Every row, in the order of ``Settings``, with the name of its field."""
    return rows_in(Settings)
