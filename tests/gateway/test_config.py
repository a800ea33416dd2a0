"""Settings: where they come from, what they mean, and everything wrong with them at once."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from core.engines.base import Approvals
from core.turns import Busy
from gateway import config, values
from gateway.choices import EngineName
from gateway.config import BadSettings, load
from gateway.settings_table import Settings, table
from gateway.values import Rate, Secret, SigninLimits, Tls

ROOT = Path(__file__).parents[2]


class Places:
    """An empty home and folder to read settings from."""

    def __init__(self, path: Path) -> None:
        self.home, self.folder = path / "home", path / "folder"
        self.home.mkdir()
        self.folder.mkdir()

    def load(self, saved: dict[str, str] | None = None, **environ: str) -> Settings:
        environ.setdefault("LANEWAY_HOME", str(self.home))
        return load(environ, self.folder, saved)

    def wrong(self, **environ: str) -> list[str]:
        with pytest.raises(BadSettings) as caught:
            self.load(**environ)
        return caught.value.problems


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


class TestSources:
    def test_the_environment_wins_over_the_folder_over_the_home_over_what_was_saved(
        self, places: Places
    ) -> None:
        name = "LANEWAY_QUEUE_LIMIT"
        saved = {name: "4"}
        assert places.load(saved).queue_limit == 4
        (places.home / ".env").write_text(f"{name}=3\n")
        assert places.load(saved).queue_limit == 3
        (places.folder / ".env").write_text(f"export {name}='2'  # words\n")
        assert places.load(saved).queue_limit == 2
        assert places.load(saved, **{name: "1"}).queue_limit == 1

    def test_an_empty_value_is_the_default_and_wins(self, places: Places) -> None:
        (places.folder / ".env").write_text("LANEWAY_QUEUE_LIMIT=2\n")
        assert places.load(LANEWAY_QUEUE_LIMIT="").queue_limit == 20

    def test_a_list_in_a_file_may_stand_on_several_lines(self, places: Places) -> None:
        (places.folder / ".env").write_text('LANEWAY_ADMINS="slack:U0ANA,\n\tslack:U0BEN"\n')
        assert places.load().admins == {"slack:U0ANA", "slack:U0BEN"}

    def test_what_nobody_sees_in_a_file_is_refused(self, places: Places) -> None:
        (places.folder / ".env").write_text("LANEWAY_OPENAI_MODEL=small\u200b\n")
        with pytest.raises(BadSettings, match="cannot be seen"):
            places.load()

    def test_the_home_may_be_named_in_the_folder(self, places: Places) -> None:
        (places.folder / ".env").write_text(f"LANEWAY_HOME={places.home}\n")
        (places.home / ".env").write_text("LANEWAY_MAX_TURNS=2\n")
        settings = load({}, places.folder)
        assert (settings.home, settings.max_turns) == (places.home, 2)

    def test_a_home_cannot_name_another_home(self, places: Places) -> None:
        (places.home / ".env").write_text("LANEWAY_HOME=/elsewhere\n")
        assert places.load().home == places.home

    def test_lists_of_people_add_up_and_other_lists_do_not(self, places: Places) -> None:
        settings = places.load(
            {"LANEWAY_ADMINS": "telegram:2", "LANEWAY_ENGINE_ENV": "SAVED"},
            LANEWAY_ADMINS="telegram:1",
            LANEWAY_ENGINE_ENV="GIVEN",
        )
        assert settings.admins == {"telegram:1", "telegram:2"}
        assert settings.engine_env == {"GIVEN"}

    def test_dollar_signs_of_a_password_are_kept(self, places: Places) -> None:
        (places.folder / ".env").write_text("LANEWAY_OPENAI_API_KEY=a${HOME}b\n")
        assert places.load().openai_api_key.reveal() == "a${HOME}b"


class TestProblems:
    def test_all_are_named_at_once(self, places: Places) -> None:
        (places.folder / ".env").write_text("LANEWAY_PREVEIW=on\nLANEWAY_PREVIEW=maybe\n")
        problems = places.wrong(
            LANEWAY_MAX_TURNS="many", LANEWAY_NOTHING_LIKE_IT="1", LANEWAY_TURN_TIMEOUT="6 hours"
        )
        assert len(problems) == 5
        text = "\n".join(problems)
        assert "LANEWAY_PREVEIW (.env in this folder) is no setting: did you mean" in text
        assert "LANEWAY_PREVIEW?" in text
        assert "LANEWAY_PREVIEW (.env in this folder) must be on or off" in text
        assert "LANEWAY_MAX_TURNS (the environment) must be a whole number" in text
        assert "LANEWAY_NOTHING_LIKE_IT (the environment) is no setting" in text
        assert "LANEWAY_TURN_TIMEOUT (the environment) must be a duration" in text

    @pytest.mark.parametrize("name", ["LANEWAY_NOPE", "LANEWAY_FOO", "LANEWAY_NAME"])
    def test_only_a_name_that_is_close_is_suggested(self, places: Places, name: str) -> None:
        (problem,) = places.wrong(**{name: "1"})
        assert problem.endswith("is no setting: see .env.example for those there are")
        (close,) = places.wrong(LANEWAY_TELEGRAM_TOKNE="1")
        assert close.endswith("did you mean LANEWAY_TELEGRAM_TOKEN?")

    def test_a_home_that_is_a_file_is_said_to_be_one(self, places: Places) -> None:
        file = places.folder / "letter.txt"
        file.write_text("dear reader")
        assert places.wrong(LANEWAY_HOME=str(file)) == [
            f"LANEWAY_HOME must be a folder: {file} is a file"
        ]

    def test_a_home_of_nobody_is_named(self, places: Places) -> None:
        wrong = places.wrong(LANEWAY_HOME="~nobody-of-that-name/x", LANEWAY_MAX_TURNS="0")
        assert len(wrong) == 2
        assert "~nobody-of-that-name/x" in wrong[0]

    def test_a_line_that_is_none_is_named(self, places: Places) -> None:
        (places.folder / ".env").write_text("# words\nLANEWAY_PREVIEW on off\n")
        assert places.wrong() == [f"{places.folder / '.env'}, line 2: write NAME=value"]

    def test_a_file_that_is_no_text_is_named(self, places: Places) -> None:
        (places.folder / ".env").write_bytes(b"LANEWAY_PREVIEW=\xff\n")
        assert places.wrong() == [f"{places.folder / '.env'} cannot be read: not UTF-8"]

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"LANEWAY_ADMINS": "telegram:ana"}, "user names can change hands"),
            ({"LANEWAY_ADMINS": "@ana"}, "write channel:id"),
            ({"LANEWAY_MEMBERS": "telegram:-100190000001"}, "LANEWAY_PLACES"),
            ({"LANEWAY_MEMBERS": "slack:ana"}, "write the id, like slack:U0ANA"),
            ({"LANEWAY_PLACES": "telegram:1900000001"}, "start with a minus"),
            ({"LANEWAY_PLACES": "slack:#lab"}, "not a name"),
            ({"LANEWAY_TELEGRAM_TOKEN": "abc"}, "as BotFather gave it"),
            ({"LANEWAY_TELEGRAM_MODE": "hook"}, "one of poll, webhook"),
            ({"LANEWAY_BUDGET_DAY": "1,50"}, "an amount in US dollars"),
            ({"LANEWAY_BOT_TURNS": "5"}, "a number per time span, like 5/1m"),
            ({"LANEWAY_MAIL_FROM": "@bad"}, "must be an address"),
            ({"LANEWAY_MAIL_FROM": "Laneway"}, "must be an address"),
            ({"LANEWAY_MAIL_FROM": "Laneway <bot@example.org"}, "must be an address"),
            ({"LANEWAY_TIMEZONE": "Mars/Olympus"}, "must be a time zone"),
            ({"LANEWAY_TRUSTED_PROXIES": "10.0.0.0/8, nowhere"}, "no address or network"),
            ({"LANEWAY_TRUSTED_PROXIES": "::ffff:91.108.4.0/22"}, "like 91.108.4.0/24"),
            ({"LANEWAY_SIGNIN_LIMITS": "code=3/15m,door=1/1h"}, "'door=1/1h'"),
            ({"LANEWAY_SMTP_URL": "smtp+plain://mail.example.org"}, "only this machine"),
            ({"LANEWAY_WEB_URL": "lab.example.org"}, "starts with https://"),
            ({"LANEWAY_ENGINE_ENV": "PATH,LANEWAY_TELEGRAM_TOKEN"}, "not handed to engines"),
            ({"LANEWAY_ACP_COMMAND": "agent 'x"}, "a quote that is not closed"),
            ({"LANEWAY_ADMIN_EMAILS": "änä@example.org"}, "write an address"),
            ({"LANEWAY_MAX_SIDE": "5"}, "from 0 to 4"),
            ({"LANEWAY_STOP_GRACE": "0s"}, "longer than zero"),
        ],
        ids=lambda value: "",
    )
    def test_each_is_said_in_plain_words(
        self, places: Places, given: dict[str, str], words: str
    ) -> None:
        (problem,) = places.wrong(**given)
        assert problem.startswith(f"{next(iter(given))} (the environment) ")
        assert words in problem

    def test_a_bad_secret_is_not_repeated(self, places: Places) -> None:
        for name in ("LANEWAY_TELEGRAM_TOKEN", "LANEWAY_SMTP_URL", "LANEWAY_SLACK_BOT_TOKEN"):
            assert "hunter2" not in "\n".join(places.wrong(**{name: "x://hunter2 hunter2"}))


class TestContradictions:
    def test_a_webhook_needs_a_secret_and_an_address(self, places: Places) -> None:
        problems = places.wrong(LANEWAY_TELEGRAM_MODE="webhook", LANEWAY_SLACK_MODE="webhook")
        assert len(problems) == 4
        settings = places.load(
            LANEWAY_TELEGRAM_MODE="webhook",
            LANEWAY_TELEGRAM_WEBHOOK_SECRET="hush",
            LANEWAY_WEB_URL="https://lab.example.org/",
        )
        assert settings.web_url == "https://lab.example.org"

    @pytest.mark.parametrize(
        ("given", "missing"),
        [
            ({"LANEWAY_ENGINE": "acp"}, "LANEWAY_ACP_COMMAND"),
            ({"LANEWAY_FALLBACK_ENGINE": "acp"}, "LANEWAY_ACP_COMMAND"),
            (
                {"LANEWAY_ENGINE": "openai", "LANEWAY_OPENAI_MODEL": "m"},
                "LANEWAY_OPENAI_BASE_URL",
            ),
            ({"LANEWAY_FALLBACK_ENGINE": "demo"}, "the same as LANEWAY_ENGINE"),
            ({"LANEWAY_SLACK_APP_TOKEN": "xapp-1"}, "LANEWAY_SLACK_BOT_TOKEN"),
            ({"LANEWAY_SLACK_BOT_TOKEN": "xoxb-1"}, "LANEWAY_SLACK_APP_TOKEN"),
        ],
        ids=lambda value: "",
    )
    def test_what_a_setting_needs_is_named(
        self, places: Places, given: dict[str, str], missing: str
    ) -> None:
        (problem,) = places.wrong(**given)
        assert missing in problem

    def test_a_value_that_could_not_be_read_is_not_missing_as_well(self, places: Places) -> None:
        assert len(places.wrong(LANEWAY_ENGINE="acp", LANEWAY_ACP_COMMAND="'x")) == 1

    def test_agents_do_not_work_in_the_home(self, places: Places) -> None:
        (problem,) = places.wrong(LANEWAY_WORKSPACE=str(places.home))
        assert "the home itself" in problem


class TestMeaning:
    def test_an_empty_environment_gives_the_defaults(self, places: Places) -> None:
        settings = places.load()
        assert settings.engine is EngineName.DEMO
        assert settings.approvals is Approvals.ASK
        assert settings.when_busy is Busy.QUEUE
        assert settings.stop_grace == 4
        assert settings.turn_timeout == 6 * 3600
        assert settings.signin_limits == SigninLimits(
            code=Rate(3, 900), network=Rate(20, 3600), mail=Rate(500, 3600), failure=Rate(10, 600)
        )
        assert settings.telegram_mode == "poll"
        assert not settings.telegram_token
        assert settings.budget_day is None

    def test_values_are_typed(self, places: Places) -> None:
        settings = places.load(
            LANEWAY_BUDGET_DAY="$1.50",
            LANEWAY_CATCH_UP="2d",
            LANEWAY_ACP_COMMAND="gemini --experimental-acp 'a b'",
            LANEWAY_SIGNIN_LIMITS="code=1/1m",
            LANEWAY_TIMEZONE="Europe/Berlin",
            LANEWAY_BOT_TURNS="7/2h",
            LANEWAY_MEMBER_EMAILS=" Ana@Example.org ,, @example.com",
            LANEWAY_SMTP_URL="smtp://ana:p%40ss@mail.example.org",
            LANEWAY_MAIL_FROM="The lab <bot@example.org>",
        )
        assert settings.mail_from == "The lab <bot@example.org>"
        assert settings.budget_day == Decimal("1.50")
        assert settings.catch_up == 172800
        assert settings.acp_command == ("gemini", "--experimental-acp", "a b")
        assert settings.signin_limits == SigninLimits(code=Rate(1, 60))
        assert settings.timezone == ZoneInfo("Europe/Berlin")
        assert settings.bot_turns == Rate(7, 7200)
        assert settings.member_emails == {"ana@example.org", "@example.com"}
        assert settings.smtp == values.MailServer(
            Tls.STARTTLS, "mail.example.org", 587, "ana", Secret("p@ss")
        )

    @pytest.mark.parametrize(
        ("peer", "inside"),
        [
            ("::ffff:91.108.6.87", True),
            ("91.108.6.87", True),
            ("::ffff:91.108.8.1", False),
            ("::ffff:5b6c:0657", True),
            ("2001:db8::1", False),
            ("unix", False),
        ],
    )
    def test_an_ipv4_address_written_as_ipv6_counts_as_what_it_is(
        self, peer: str, inside: bool
    ) -> None:
        for written in ("91.108.4.0/22", "::ffff:91.108.4.0/118"):
            assert values.in_networks(peer, [values.network(written)]) is inside

    def test_secrets_are_not_shown(self, places: Places) -> None:
        token = "800000001:TESTtoken"
        settings = places.load(
            LANEWAY_TELEGRAM_TOKEN=token, LANEWAY_SMTP_URL="smtps://a:pass-word@example.org"
        )
        assert "TESTtoken" not in f"{settings!r} {settings.telegram_token}"
        assert "pass-word" not in repr(settings)
        handed_over = "\0a\0pass-word"
        assert config.secrets_of(settings) == {token, "TESTtoken", "pass-word", handed_over}


class TestTable:
    def test_the_example_file_is_made_from_it(self) -> None:
        assert (ROOT / ".env.example").read_text() == config.example(), (
            "run: make example"  # the way to make it current
        )

    def test_every_default_means_what_the_field_has(self) -> None:
        empty = Settings()
        for row in table():
            assert row.read(row.default) == getattr(empty, row.field), row.name

    def test_names_are_those_of_the_product(self) -> None:
        names = [row.name for row in table()]
        assert len(names) == len(set(names))
        assert all(name.startswith(config.PREFIX) for name in names)
