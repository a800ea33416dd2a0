"""Text and ranges cut into parts."""

from __future__ import annotations

from channels.markup.split import best_cut, split_styled
from channels.markup.styled import Kind, Span, Styled


def test_a_part_ends_where_a_paragraph_does() -> None:
    text = "one two three\n\nfour five\nsix"
    assert text[: best_cut(text, 0, 20)] == "one two three\n\n"
    assert text[: best_cut(text, 0, 13)] == "one two "


def test_a_range_goes_on_in_the_next_part_with_what_it_says() -> None:
    styled = Styled("aaaa bbbb", (Span(Kind.HEADING, 0, 9, "why", 2),))
    first, second = split_styled(styled, 5)
    assert first == Styled("aaaa ", (Span(Kind.HEADING, 0, 5, "why", 2),))
    assert second == Styled("bbbb", (Span(Kind.HEADING, 0, 4, "why", 2),))


def test_code_is_cut_between_lines_even_where_that_leaves_a_part_nearly_empty() -> None:
    code = "x\n" + "a long line of code\n" * 3
    parts = split_styled(Styled(code, (Span(Kind.PRE, 0, len(code)),)), 20)
    assert [part.text for part in parts] == ["x\n", *["a long line of code\n"] * 3]


def test_code_begins_in_the_next_part_if_not_one_line_of_it_fits() -> None:
    styled = Styled("words\na long line of code\nmore", (Span(Kind.PRE, 6, 30),))
    assert [part.text for part in split_styled(styled, 24)] == [
        *("words\n", "a long line of code\nmore")
    ]


def test_parts_are_made_smaller_until_they_fit_as_they_are_written() -> None:
    parts = split_styled(Styled("<" * 100), 40, excess=lambda part: 4 * len(part.text) / 40)
    assert [len(part.text) for part in parts] == [10] * 10


def test_a_part_that_no_size_makes_fit_is_one_sign() -> None:
    parts = split_styled(Styled("k" * 5), 40, excess=lambda part: 2)
    assert [part.text for part in parts] == ["k"] * 5
