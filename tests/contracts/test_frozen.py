"""Our frozen dataclasses behave as the standard library's; each example is made both ways."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from core.frozen import dataclass as ours

ROOT = Path(__file__).resolve().parents[2]
LATE = {"core/engines/openai_http.py"}  # loaded with use, not by every start
MADE: list[int] = []


def _counted() -> list[int]:
    MADE.append(1)
    return [0]


def classes(dataclass: Callable[..., Any]) -> tuple[Any, Any, Any]:
    @dataclass(frozen=True, slots=True)
    class Point:
        x: int
        y: int = 2
        notes: list[int] = field(default_factory=_counted)
        hidden: str = field(default="h", repr=False)
        seen: int = field(default=0, compare=False)
        first: str = field(init=False)
        fixed: int = field(default=9, init=False)
        kind: ClassVar[str] = "point"

        def __post_init__(self) -> None:
            object.__setattr__(self, "first", str(self.x))

    @dataclass(frozen=True, slots=True)
    class Named(Point):
        name: str = field(default="", kw_only=True)

        def __repr__(self) -> str:
            return f"<{self.name}>"

    @dataclass(frozen=True, slots=True)
    class Empty:
        """Nothing."""

    return Point, Named, Empty


@pytest.fixture(params=[ours, dataclasses.dataclass], ids=["ours", "the library's"])
def made(request: pytest.FixtureRequest) -> tuple[Any, Any, Any]:
    return classes(request.param)


def test_fields_are_taken_in_order_by_name_and_by_default(made: tuple[Any, Any, Any]) -> None:
    point, named, empty = made
    assert (point(1).x, point(1).y, point(1, 3).y, point(y=5, x=4).y) == (1, 2, 3, 5)
    assert (point(1).first, point(1).fixed, point.kind) == ("1", 9, "point")
    assert named(1, 2, name="n").name == "n"
    assert empty() == empty()
    assert [f.name for f in fields(named)][-1] == "name"
    match point(7, 8):
        case point(x, y):
            assert (x, y) == (7, 8)


def test_a_factory_makes_one_for_each_value_that_was_given_none(made: tuple[Any, Any, Any]) -> None:
    point = made[0]
    MADE.clear()
    assert point(1).notes is not point(1).notes
    assert point(1, notes=[5]).notes == [5]
    assert len(MADE) == 2


@pytest.mark.parametrize(
    ("args", "more"), [((), {}), ((1, 2, [], "", 0, "too many"), {}), ((1,), {"first": "1"})]
)
def test_a_wrong_call_is_told_by_the_name_of_the_class(
    made: tuple[Any, Any, Any], args: tuple[object, ...], more: dict[str, Any]
) -> None:
    with pytest.raises(TypeError, match=r"Point\.__init__\(\)"):
        made[0](*args, **more)


def test_nothing_can_be_changed_added_or_removed(made: tuple[Any, Any, Any]) -> None:
    point = made[0](1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x
    with pytest.raises((FrozenInstanceError, TypeError)):
        point.other = 1
    assert not hasattr(point, "__dict__")


def test_values_are_equal_by_class_and_compared_fields(made: tuple[Any, Any, Any]) -> None:
    point, named, empty = made
    assert point(1) == point(1, seen=5)
    assert point(1) != point(2)
    assert point(1) != named(1)
    assert point(1) != (1, 2)
    assert hash(empty()) == hash(empty())
    assert hash(point(1, notes=())) == hash(point(1, notes=(), seen=5))
    assert len({point(1, notes=()), point(1, notes=()), point(2, notes=())}) == 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(point(1))


def test_what_is_shown_is_the_same(made: tuple[Any, Any, Any]) -> None:
    point, named, empty = made
    where = "classes.<locals>."
    assert repr(point(1)) == f"{where}Point(x=1, y=2, notes=[0], seen=0, first='1', fixed=9)"
    assert repr(named(1, name="n")) == "<n>"
    assert repr(empty()) == f"{where}Empty()"
    assert str(inspect.signature(named)).endswith("*, name: 'str' = '') -> None")


def test_copies_and_changed_copies_are_values_of_their_own(made: tuple[Any, Any, Any]) -> None:
    point, named, _ = made
    one = named(1, 2, [3], name="n")
    assert copy.copy(one) == one
    deep = copy.deepcopy(one)
    assert deep == one
    assert deep.notes is not one.notes
    assert replace(one, x=5, name="m") == named(5, 2, [3], name="m")
    with pytest.raises((TypeError, ValueError), match="fixed"):
        replace(point(1), fixed=1)
    assert asdict(point(1))["notes"] == [0]


def test_methods_that_a_class_has_itself_are_kept() -> None:
    @ours(frozen=True, slots=True)
    class Loose:
        word: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Loose) and self.word.lower() == other.word.lower()

        def __hash__(self) -> int:
            return hash(self.word.lower())

    assert Loose("A") == Loose("a")
    assert len({Loose("A"), Loose("a")}) == 1


def test_a_class_that_can_be_changed_is_the_librarys() -> None:
    @ours(slots=True)
    class Counter:
        count: int = 0

    counter = Counter()
    counter.count += 1
    assert counter == Counter(1)


@ours(frozen=True, slots=True)
class Sent:
    word: str
    number: int = 1


def test_a_value_survives_being_pickled() -> None:
    assert pickle.loads(pickle.dumps(Sent("a", 2))) == Sent("a", 2)


def test_every_start_makes_its_frozen_classes_the_quick_way() -> None:
    slow = set()
    for folder in ("core", "gateway"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            makes_some = "\n@dataclass(frozen=True, slots=True" in text
            if makes_some and "\nfrom core.frozen import dataclass\n" not in text:
                slow.add(path.relative_to(ROOT).as_posix())
    assert slow == LATE
