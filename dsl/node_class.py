"""`@node` makes a class of the AST: a frozen, slotted, keyword-only dataclass, made quickly.

The standard decorator compiles six methods for each class, which for the AST alone took a fifth of
the time of a `wf check`. Here only `__init__` is made for a class; the other methods are shared.
To a type checker `@node` is `@dataclass(frozen=True, slots=True, kw_only=True)`.
"""

from __future__ import annotations

from dataclasses import Field, FrozenInstanceError, field
from typing import Any, TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def node(cls: type[_T]) -> type[_T]:
    """Returns the class anew with slots for its annotated names. Fields that were made with
    `field(compare=False)` take no part in `==` and `hash`; any other value is a default."""
    space = dict(cls.__dict__)
    names = tuple(space.get("__annotations__", {}))
    given = {name: space.pop(name) for name in names if name in space}
    for name in ("__dict__", "__weakref__"):
        space.pop(name, None)
    kind: Any = type(cls)
    made = kind(cls.__name__, cls.__bases__, space | _SHARED | {"__slots__": names})
    made.__qualname__ = cls.__qualname__
    made._fields = names
    uncompared = {name for name, value in given.items() if isinstance(value, Field)}
    made._compared = tuple(name for name in names if name not in uncompared)
    defaults = {name: value for name, value in given.items() if name not in uncompared}
    made.__init__ = _init(made, names, defaults)
    return made  # type: ignore[no-any-return]


def _init(cls: type, names: tuple[str, ...], defaults: dict[str, Any]) -> Any:
    """Slots are filled through their descriptors, as `__setattr__` refuses."""
    known: dict[str, Any] = {f"_set_{name}": cls.__dict__[name].__set__ for name in names}
    known |= {f"_default_{name}": value for name, value in defaults.items()}
    parameters = [f"{name}=_default_{name}" if name in defaults else name for name in names]
    lines = [f"  _set_{name}(self, {name})" for name in names]
    exec(f"def __init__(self, *, {', '.join(parameters)}):\n" + "\n".join(lines), known)
    return known["__init__"]


def _values(self: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(getattr(self, name) for name in names)


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return _values(self, self._compared) == _values(other, self._compared)


def _hash(self: Any) -> int:
    return hash(_values(self, self._compared))


def _repr(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._fields)
    return f"{self.__class__.__qualname__}({shown})"


def _refuse(self: Any, name: str, *_value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _reduce(self: Any) -> tuple[Any, ...]:
    return _rebuilt, (self.__class__, _values(self, self._fields))


def _rebuilt(cls: Any, values: tuple[Any, ...]) -> Any:
    return cls(**dict(zip(cls._fields, values, strict=True)))


_SHARED = {
    "__eq__": _eq,
    "__hash__": _hash,
    "__repr__": _repr,
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__reduce__": _reduce,
}
