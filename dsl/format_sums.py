"""What a layout asks of atoms before it makes lines: pairs, elements, spaces, sums of widths."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from dsl.format_atoms import Atom
from dsl.format_marks import GroupKind, Marks

OPENERS = frozenset(("(", "[", "{", "${"))
CLOSERS = frozenset((")", "]", "}"))
# A comment that tells the compiler something about the line it ends.
_DIRECTIVE = re.compile(r"#\s*wf:")


class Sums:
    """By the index of an atom.

    `element` says whether it begins an item of a body or an element of a list: "" not, "," after
    another one in a list or in declarations, "1" otherwise. `spaces` is the space before it on one
    line. `tails` are the columns after it up to the next place where a line may end.
    """

    def __init__(self, atoms: list[Atom], marks: Marks) -> None:
        self._atoms = atoms
        self._marks = marks
        self.closer = _pair(atoms)
        self._opener = {closer: opener for opener, closer in self.closer.items()}
        self._counts: dict[int, int] = {}
        self.element = self._elements()
        self.spaces = [0, *(self._space(a, b) for a, b in pairwise(atoms))]
        self._widths, self._forced, self._bodies = [0], [0], [0]
        for i in range(len(atoms)):
            self._add(i)
        self.tails = self._tails()
        self._pinned = self._pin()

    def is_pinned(self, first: int, last: int) -> bool:
        """Whether the atoms from `first` to `last` share a line with a comment about that line."""
        return self._pinned.get(first) is not None and (
            self._pinned[first] == self._pinned.get(last)
        )

    def width(self, first: int, last: int) -> int:
        """The columns of the atoms from `first` to `last` on one line, with the space before."""
        return self._widths[last + 1] - self._widths[first]

    def may_be_flat(self, opener: int, kind: GroupKind) -> bool:
        """Whether a group can stand on one line at all."""
        closer = self.closer[opener]
        if self._written_open(opener) or self._forced[closer + 1] > self._forced[opener + 1]:
            return False
        if kind != "body":
            return True
        inside = self._bodies[closer + 1] - self._bodies[opener + 1]
        return self._counts.get(opener, 0) <= 1 and inside == 0

    def is_empty(self, opener: int) -> bool:
        """Whether nothing but comments stands in a group."""
        return self.closer[opener] == opener + 1

    def _pin(self) -> dict[int, int]:
        """For each atom of a line that ends in a directive such as `# wf: allow WF220`: which."""
        line_of: dict[int, int] = {}
        for i, atom in enumerate(self._atoms):
            beside = atom.comments[0] if atom.comments else None
            if beside and not beside.lines_before and _DIRECTIVE.match(beside.text):
                line_of.update(dict.fromkeys(self._line_before(i), i))
        return line_of

    def _line_before(self, i: int) -> Iterator[int]:
        """The atoms that will share a line with what stands before atom i, the last first."""
        depth = 0
        for k in range(i - 1, -1, -1):
            atom = self._atoms[k]
            yield k
            if atom.broken or (depth == 0 and self.element[k]):
                return
            if atom.type in CLOSERS:
                kind = self._marks.groups.get(self._atoms[self._opener[k]].start)
                if kind is not None and not self.may_be_flat(self._opener[k], kind):
                    return
                depth += 1
            elif atom.type in OPENERS:
                depth = max(0, depth - 1)

    def _elements(self) -> list[str]:
        found: list[str] = []
        around: list[int] = []
        for i, atom in enumerate(self._atoms):
            if atom.type in CLOSERS:
                around.pop()
                found.append("")
            else:
                opener = around[-1] if around else -1
                found.append(self._element(i, opener))
                if found[-1]:
                    self._counts[opener] = self._counts.get(opener, 0) + 1
            if atom.type in OPENERS:
                around.append(i)
        return found

    def _element(self, i: int, opener: int) -> str:
        atom = self._atoms[i]
        kind = "body" if opener < 0 else self._marks.groups.get(self._atoms[opener].start)
        begins = kind == "list" and (i == opener + 1 or atom.after_comma)
        if not begins and atom.start not in self._marks.items:
            return ""
        return "," if kind in ("list", "declarations") and i > opener + 1 else "1"

    def _space(self, before: Atom, atom: Atom) -> int:
        marks = self._marks
        if before.type == "{" or atom.type == "}":
            return 0 if before.type == "{" and atom.type == "}" else 1
        if before.text.endswith("?") and atom.type == "?":
            return 1  # together they would be another sign
        if before.type == atom.type == "-":
            return 1
        if before.type in ("(", "[", ".") or atom.type in (")", "]", ",", ".", "?"):
            return 0
        if atom.type == ":" and atom.start not in marks.spaced:
            return 0
        return 0 if before.start in marks.close_after or atom.start in marks.close_before else 1

    def _add(self, i: int) -> None:
        atom = self._atoms[i]
        comma = 1 if self.element[i] == "," else 0
        kind = self._marks.groups.get(atom.start)
        full = kind is not None and not self.is_empty(i)
        forced = bool(atom.comments) or atom.tall or (full and self._written_open(i))
        self._widths.append(self._widths[-1] + self.spaces[i] + comma + atom.width)
        self._forced.append(self._forced[-1] + forced)
        self._bodies.append(self._bodies[-1] + (full and kind == "body"))

    def _written_open(self, opener: int) -> bool:
        if self.is_empty(opener):
            return False
        written = self._atoms[opener + 1].broken
        return written or self._atoms[opener].start in self._marks.always_open

    def _tails(self) -> list[int]:
        atoms = self._atoms
        tails = [0] * len(atoms)
        for i in range(len(atoms) - 3, -1, -1):  # nothing stands after the last of them
            tails[i] = self._tail(i + 1, tails)
        return tails

    def _tail(self, i: int, tails: list[int]) -> int:
        """The columns from atom i on that must go on the line of the one before it."""
        atom = self._atoms[i]
        if self.element[i]:
            return 1 if self.element[i] == "," else 0
        group = self._marks.groups.get(atom.start)
        if atom.type in CLOSERS and not self.is_empty(self._opener[i]):
            kind = self._marks.groups.get(self._atoms[self._opener[i]].start)
            if kind is not None:
                return 1 if kind == "list" else 0
        own = self.spaces[i] + atom.width
        return own if group is not None and not self.is_empty(i) else own + tails[i]


def _pair(atoms: list[Atom]) -> dict[int, int]:
    closer: dict[int, int] = {}
    open_: list[int] = []
    for i, atom in enumerate(atoms):
        if atom.type in OPENERS:
            open_.append(i)
        elif atom.type in CLOSERS:
            closer[open_.pop()] = i
    return closer
