"""What was said in a thread before somebody called us into it."""

from __future__ import annotations

import pytest

from channels.slack.fields import milliseconds
from core.channel import RateLimited, Recall, Said, SendError, Uncertain
from core.messages import Address
from tests.channels.slack.conftest import Slack
from tests.fakes.slack import ANA, BEN, LAB
from tests.fakes.slack_world import BOT_ID, BOT_USER


async def recalled(slack: Slack, root: str, before: str, most: int = 10) -> list[Said]:
    await slack.channel._web.me(slack.clock.now())
    done = await slack.channel.do(Recall(Address("slack", LAB, root), before, most))
    return list(done.said)


def says(slack: Slack, text: str, user: str = ANA, thread: str = "", **fields: object) -> str:
    said = slack.fake.user_says(
        text, user=user, channel=LAB, thread=thread, delivered=False, **fields
    )
    return str(said["ts"])


async def test_it_tells_how_the_thread_began_and_what_was_said_last(slack: Slack) -> None:
    root = says(slack, "the build is <https://ci.test|red> &amp; <@U0ANA> knows", BEN)
    for n in range(15):
        says(slack, f"reply {n}", thread=root)
    mention = says(slack, f"<@{BOT_USER}> why?", thread=root)
    says(slack, "later", thread=root)
    said = await recalled(slack, root, mention, 3)
    assert said[0] == Said("Ben", "the build is [red](https://ci.test) & @Ana knows")
    assert said[1:] == [Said("Ana", f"reply {n}") for n in (12, 13, 14)]


async def test_without_a_message_it_tells_all_so_far_and_where_and_when_each_stands(
    slack: Slack,
) -> None:
    root = says(slack, "root", BEN)
    last = says(slack, "the last word", thread=root)
    said = await recalled(slack, root, "")
    assert said == [Said("Ben", "root"), Said("Ana", "the last word")]
    assert [one.message_id for one in said] == [root, last]
    assert [one.at for one in said] == [milliseconds(root), milliseconds(last)]


async def test_our_own_words_are_told_only_where_they_began_the_thread(slack: Slack) -> None:
    ours = {"user": BOT_USER, "bot_id": BOT_ID}
    root = says(slack, "a report", **ours)  # type: ignore[arg-type]
    says(slack, "more of it", thread=root, **ours)  # type: ignore[arg-type]
    mention = says(slack, "what?", thread=root)
    assert await recalled(slack, root, mention) == [Said("you", "a report")]


async def test_a_file_is_told_by_its_name(slack: Slack) -> None:
    sent = slack.fake.user_sends(b"x", "plan.pdf", text="look", channel=LAB, delivered=False)
    mention = says(slack, "well?", thread=sent["ts"])
    assert await recalled(slack, sent["ts"], mention) == [Said("Ana", "look\n[file plan.pdf]")]


async def test_what_cannot_be_read_is_left_out(slack: Slack) -> None:
    root = says(slack, "root")
    odd = {"ts": slack.fake.ts(), "thread_ts": root, "text": 7, "user": ANA}
    slack.fake.keep(LAB, odd)
    mention = says(slack, "well?", thread=root)
    assert Said("Ana", "root") in await recalled(slack, root, mention)


@pytest.mark.parametrize(
    ("error", "kind"), [("ratelimited", RateLimited), ("internal_error", Uncertain)]
)
async def test_a_failure_is_said(slack: Slack, error: str, kind: type[SendError]) -> None:
    root = says(slack, "root")
    slack.fake.fail("conversations.replies", error)
    with pytest.raises(kind):
        await recalled(slack, root, says(slack, "well?", thread=root))
