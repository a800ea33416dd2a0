"""Frozen dataclasses whose classes are made in a third of the time, and their values in half of it.

There are some three hundred of them, and the standard library's way of making them took longer
than everything else that a start imports. It compiles six functions for each class; here it is one
text for the three that must be quick, and fields are set through their slots. A type checker sees
``dataclasses.dataclass`` itself, and with other options than these it is that. ``field``,
``replace``, ``fields`` and ``asdict`` work as ever. Must not know what the values are for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

Fields = tuple[Field[Any], ...]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen=False, slots=False, kw_only=False, **others):
        if frozen and slots and not others:
            return lambda cls: _made(cls, kw_only)
        return dataclasses.dataclass(frozen=frozen, slots=slots, kw_only=kw_only, **others)


def _made(cls: Any, kw_only: bool) -> Any:
    cls.__doc__ = cls.__doc__ or cls.__name__  # or one is written, from a signature
    cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(cls)
    made = fields(cls)
    scope: dict[str, Any] = {"__name__": cls.__module__}
    exec("\n".join((*_init(cls, made, scope), *_same(made))), scope)  # names of fields only
    taken = {f.name: f.type for f in made if f.init}
    scope["__init__"].__annotations__ = taken | {"return": None}
    for name in ("__init__", "__eq__", "__hash__"):
        scope[name].__qualname__ = f"{cls.__qualname__}.{name}"  # which wrong calls are told by
        if cls.__dict__.get(name) is None:  # a class that defines __eq__ has None as __hash__
            setattr(cls, name, scope[name])
    for name, method in SHARED.items():
        if name not in cls.__dict__:
            setattr(cls, name, method)
    return cls


def _init(cls: Any, made: Fields, scope: dict[str, Any]) -> list[str]:
    """The lines of ``__init__``; what they use goes into ``scope``."""
    plain: list[str] = []
    named: list[str] = []
    body: list[str] = []
    for f in made:
        name, value = f.name, f.name
        default = ""
        if f.default is not MISSING:
            default = f"_default_{name}"
            scope[default] = f.default
        elif f.default_factory is not MISSING:
            default = "_missing"
            scope[default] = MISSING
            scope[f"_make_{name}"] = f.default_factory
            value = f"_make_{name}() if {name} is _missing else {name}"
        if f.init:
            (named if f.kw_only else plain).append(f"{name}={default}" if default else name)
        elif default:
            value = f"_make_{name}()" if default == "_missing" else default
        else:
            continue  # __post_init__ sets it
        scope[f"_set_{name}"] = getattr(cls, name).__set__
        body.append(f" _set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    taken = ", ".join(("self", *plain, *(("*", *named) if named else ())))
    return [f"def __init__({taken}):", *(body or [" pass"])]


def _same(made: Fields) -> list[str]:
    """The lines of ``__eq__`` and ``__hash__``."""
    compared = [f for f in made if f.compare]
    hashed = [f for f in made if (f.compare if f.hash is None else f.hash)]
    return [
        "def __eq__(self, other):",
        " if other.__class__ is self.__class__:",
        f"  return {_tuple('self', compared)} == {_tuple('other', compared)}",
        " return NotImplemented",
        "def __hash__(self):",
        f" return hash({_tuple('self', hashed)})",
    ]


def _tuple(owner: str, some: Iterable[Field[Any]]) -> str:
    return "(" + "".join(f"{owner}.{f.name}, " for f in some) + ")"


# What needs no speed is the same function for every class ---------------------------------


def _repr(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({shown})"


def _refuse_setting(self: Any, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deleting(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in fields(self)]


def _setstate(self: Any, state: list[Any]) -> None:
    for f, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)


SHARED = {
    "__repr__": _repr,
    "__setattr__": _refuse_setting,
    "__delattr__": _refuse_deleting,
    "__getstate__": _getstate,  # copy and pickle set attributes otherwise
    "__setstate__": _setstate,
}
