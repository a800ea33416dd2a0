"""What agents write, whole and in pieces: the inputs of the properties every platform has."""

from __future__ import annotations

from hypothesis import strategies as st

SIGNS = st.sampled_from(
    [
        *"*_~`[]()<>#>-+|\\@&:.\n \t\r\0",
        *("```", "```py\n", "\n\n", "- ", "1. ", "> ", "    ", "|-|-|\n", "- [x] ", "<br>"),
        *("https://a_b/", "@ana", "[a](http://x)", "tg://", "word", "**", "~~", "||", "# "),
        *("<!channel>", "<@U1>", "<@123>", "<@&123>", "@everyone", "@here", "<t:12:R>"),
        *("😀", "é", "\u200d", "\ud800"),
    ]
)
MARKDOWN = st.lists(SIGNS | st.text(max_size=5), max_size=40).map("".join)

# Some would take very long if the time grew faster than the text.
BIG = [
    "word " * 20_000,
    "k" * 100_000,
    "<" * 20_000,
    "*a" * 3_000,
    "[" * 50_000,
    "[a](" * 3_000,
    "> " * 10_000 + "x",
    "- " * 3_000 + "x",
    "`a``" * 2_000,
    "@here " * 3_000,
    "> **a" + " `b`" * 1_000 + "**",
    "https://a/_b_ " * 1_000,
    "😀 **b** " * 1_000,
    "[a](https://x.org/a) " * 1_000,
    "```py\n" + "x = 1\n" * 20_000,
    "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 1_500,
    "[" + "a " * 20_000 + "](https://x.org/" + "q" * 1_400 + ")",
]
