"""The aliases of a file as each of its workflows sees them: its own come before those of the file.

A file may hold thousands of aliases and thousands of workflows. So an alias of the file is resolved
once for all of them, and again only for a workflow that gives another meaning to a name it uses:
there for its misfits the first time, later only when the workflow refers to it.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import cast

from compiler.type_model import BUILTIN, KnownAlias, OwnKnown, Report, TypeResolver
from dsl.nodes import ListType, NamedType, NullableType, ObjectType, TypeAlias, TypeExpr

_MANY = 600  # aliases of a file


class FileAliases:
    """`aliases` are those of the whole file; the `imported` ones have been checked in their own."""

    def __init__(self, aliases: Mapping[str, TypeExpr], imported: Collection[str] = ()) -> None:
        self.aliases = aliases
        self._imported = imported
        self._known: dict[str, KnownAlias] = {}
        self._unchecked = dict.fromkeys(name for name in aliases if name not in imported)
        self._unchanged = dict.fromkeys(self._unchecked)
        self._names = tuple[str, ...]()
        self._users: dict[str, list[str]] = {}
        self._places: dict[str, int] = {}
        self._changed: dict[str, frozenset[str]] = {}

    def seen_by(self, own: Sequence[TypeAlias]) -> Mapping[str, TypeExpr]:
        """Returns all aliases in sight of a workflow; of two equal names the first counts."""
        if not own:
            return self.aliases
        mine = {alias.name.text: alias.type for alias in reversed(own)}
        return ChainMap(mine, cast("dict[str, TypeExpr]", self.aliases))

    def names(self, own: Sequence[TypeAlias]) -> tuple[str, ...]:
        """Returns what a workflow may call a type, for hints. Beside very many of the file its own
        are left out, so that all workflows share one tuple: each other one is indexed anew."""
        if own and len(self.aliases) <= _MANY:
            return (*BUILTIN, *sorted(self.seen_by(own)))
        if not self._names:
            self._names = (*BUILTIN, *sorted(self.aliases))
        return self._names

    def resolver(self, own: Sequence[TypeAlias], report: Report) -> TypeResolver:
        """Returns the resolver of a workflow. What is wrong with an alias of the file is reported
        to the first workflow, to the first in which it means something else, and to each of those
        that refers to it."""
        if not own:
            resolver = TypeResolver(self.aliases, report, self._known)
            resolver.check_aliases(self._unchecked)
            self._unchecked = {}
            return resolver
        mine = dict.fromkeys(alias.name.text for alias in reversed(own))
        changed = self._changed_by(mine)
        fresh = self._unchecked.keys() - changed
        first = self._unchanged.keys() & changed
        for name in fresh:
            del self._unchecked[name]
        for name in first:
            del self._unchanged[name]
        ours = sorted(fresh | first, key=self._places.__getitem__)
        resolver = TypeResolver(self.seen_by(own), report, OwnKnown(self._known, changed))
        resolver.check_aliases(dict.fromkeys((*ours, *mine)))
        return resolver

    def _changed_by(self, own: Iterable[str]) -> frozenset[str]:
        """The names that mean something else where these are declared: they and their users."""
        parts = [self._users_of(name) for name in own]
        return parts[0] if len(parts) == 1 else frozenset[str]().union(*parts)

    def _users_of(self, own: str) -> frozenset[str]:
        """A name and all that lead to it, looked up once for all workflows that declare it."""
        if own in self._changed:
            return self._changed[own]
        if not self._places:
            self._places = {name: place for place, name in enumerate(self.aliases)}
            for name, expr in self.aliases.items():
                for used in _names_in(expr):
                    self._users.setdefault(used, []).append(name)
        found, pending = set[str](), [own]
        while pending:
            name = pending.pop()
            if name not in found:
                found.add(name)
                pending += self._users.get(name, ())
        self._changed[own] = frozenset(found)
        return self._changed[own]


def _names_in(root: TypeExpr) -> Iterator[str]:
    pending: list[TypeExpr] = [root]
    while pending:
        match pending.pop():
            case NamedType(name=name):
                yield name
            case ListType(item=inner) | NullableType(inner=inner):
                pending.append(inner)
            case ObjectType(fields=fields):
                pending += [field.type for field in fields]
