"""`dataclass`, `field` and `replace` as in `dataclasses`, made quickly.

The standard decorator compiles six methods for each class, and its module imports `inspect`; for
the ninety classes of a `wf check` that took a fourth of its time. Here only `__init__` is made for
a class; the other methods are shared. To a type checker these are the standard ones.

What differs: there are always slots; a class inherits no fields; there is no `ClassVar`,
`InitVar` or ordering. `dataclasses.fields` and what stands on it work, as they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

_MISSING: Any = object()


class _Field:
    """What `field(…)` leaves in a class until the decorator has read it."""

    __slots__ = ("compare", "default_factory", "init", "repr")

    def __init__(self, default_factory: Any, init: bool, repr: bool, compare: bool) -> None:
        self.default_factory = default_factory
        self.init = init
        self.repr = repr
        self.compare = compare


def _field(
    *, default_factory: Any = _MISSING, init: bool = True, repr: bool = True, compare: bool = True
) -> Any:
    return _Field(default_factory, init, repr, compare)


def _dataclass(
    *,
    frozen: bool = False,
    slots: bool = True,
    kw_only: bool = False,
    eq: bool = True,
    repr: bool = True,
) -> Callable[[type], type]:
    def make(cls: type) -> type:
        return _made(cls, frozen, kw_only, eq, repr)

    return make


def _replace(value: Any, /, **changes: Any) -> Any:
    cls = value.__class__
    for name in cls._given:
        if name not in changes:
            changes[name] = getattr(value, name)
    return cls(**changes)


def _made(cls: type, frozen: bool, kw_only: bool, eq: bool, shown: bool) -> type:
    """Returns the class anew, with slots for its annotated names."""
    space = dict(cls.__dict__)
    names = tuple(space.get("__annotations__", {}))
    given = {name: space.pop(name) for name in names if name in space}
    fields = {name: value for name, value in given.items() if isinstance(value, _Field)}
    for name in ("__dict__", "__weakref__"):
        space.pop(name, None)
    compared = tuple(n for n in names if n not in fields or fields[n].compare)
    space |= {
        "__slots__": names,
        "__dataclass_fields__": _StandardFields(),
        "_fields": names,
        "_given": tuple(n for n in names if n not in fields or fields[n].init),
        "_shown": tuple(n for n in names if n not in fields or fields[n].repr),
        "_values": staticmethod(attrgetter(*compared) if compared else lambda _value: ()),
    }
    space.setdefault("__match_args__", () if kw_only else space["_given"])
    if shown:
        space.setdefault("__repr__", _repr)
    if eq:
        space |= {"__eq__": _eq, "__hash__": _hash if frozen else None}
    if frozen:
        space |= {"__setattr__": _refuse, "__delattr__": _refuse, "__reduce__": _reduce}
    kind: Any = type(cls)
    made: Any = kind(cls.__name__, cls.__bases__, space)
    made.__qualname__ = cls.__qualname__
    made.__init__ = _init_on_use(made, given, kw_only)
    return made  # type: ignore[no-any-return]


def _init_on_use(cls: Any, given: dict[str, Any], kw_only: bool) -> Any:
    """Most runs use a part of the classes, so `__init__` is compiled at the first call."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        made = _init(cls, given, kw_only, hasattr(cls, "__post_init__"))
        cls.__init__ = made
        made(self, *args, **kwargs)

    return __init__


def _init(cls: Any, given: dict[str, Any], kw_only: bool, is_completed: bool) -> Any:
    """Where `__setattr__` refuses, slots are filled through their descriptors."""
    is_frozen = cls.__setattr__ is _refuse
    known: dict[str, Any] = {"_MISSING": _MISSING}
    parameters, lines = ["self", *["*"][: kw_only and bool(cls._given)]], ["  pass"]
    for name in cls._given:
        default = given.get(name, _MISSING)
        value, parameter = name, name
        if isinstance(default, _Field):
            if default.default_factory is not _MISSING:
                known[f"_make_{name}"] = default.default_factory
                parameter = f"{name}=_MISSING"
                value = f"_make_{name}() if {name} is _MISSING else {name}"
        elif default is not _MISSING:
            known[f"_default_{name}"] = default
            parameter = f"{name}=_default_{name}"
        parameters.append(parameter)
        if is_frozen:
            known[f"_set_{name}"] = cls.__dict__[name].__set__
            lines.append(f"  _set_{name}(self, {value})")
        else:
            lines.append(f"  self.{name} = {value}")
    if is_completed:
        lines.append("  self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines), known)
    return known["__init__"]


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._values(self) == self._values(other)


def _hash(self: Any) -> int:
    return hash(self._values(self))


def _repr(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._shown)
    return f"{self.__class__.__qualname__}({shown})"


def _refuse(self: Any, name: str, *_value: object) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _reduce(self: Any) -> tuple[Any, ...]:
    return _rebuilt, (self.__class__, tuple(getattr(self, name) for name in self._fields))


def _rebuilt(cls: Any, values: tuple[Any, ...]) -> Any:
    made = cls.__new__(cls)
    for name, value in zip(cls._fields, values, strict=True):
        cls.__dict__[name].__set__(made, value)
    return made


class _StandardFields:
    """What `dataclasses.fields`, `replace` and `asdict` look for; made when they do."""

    def __get__(self, _value: object, cls: Any) -> dict[str, Any]:
        import dataclasses

        found: dict[str, Any] = {}
        for name in cls._fields:
            made: Any = dataclasses.field(init=name in cls._given, repr=name in cls._shown)
            made.name, made.type = name, cls.__annotations__[name]
            made._field_type = dataclasses._FIELD  # type: ignore[attr-defined]
            found[name] = made
        return found


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
else:
    dataclass, field, replace = _dataclass, _field, _replace
