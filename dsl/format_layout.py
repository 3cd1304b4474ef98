"""From atoms to lines: what stands on a line of its own, what is broken, how deep it is indented.

One pass from left to right with a stack of open groups, after sums of widths (`dsl.format_sums`)
from which "does it fit?" is one subtraction. A group is laid out on one line if that is how it
was written and it fits, else over several lines: then each item or element has its own. What
decides (the atoms, the comments, the line end after an opening bracket) is the same in the
result, so that laying out the result changes nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from dsl.format_atoms import Atom, Comment, indent_block
from dsl.format_lines import MAX_WIDTH, Line
from dsl.format_marks import GroupKind, Marks, Value
from dsl.format_sums import CLOSERS, OPENERS, Sums
from dsl.quick_class import dataclass

INDENT = 2
CONTINUED = 4
_ALIGNED = frozenset(("input", "output", "var", "type", "set", "collect", "action"))
# Words and signs that go on with a statement at its own indentation after a comment.
_GO_ON = frozenset(("else", "on_error", "finally", "{"))


@dataclass(slots=True)
class _Frame:
    """An open group, whose elements stand at `inner` and whose closer at `outer`; `item` is the
    indentation of the item around it. `fresh` until the first of its lines is begun."""

    kind: GroupKind | None
    flat: bool
    closer: int
    outer: int
    inner: int
    item: int
    fresh: bool = True


def lay_out(atoms: list[Atom], marks: Marks) -> list[Line]:
    """Returns the lines of the canonical text."""
    return _Layout(atoms, marks).run()


class _Layout:
    def __init__(self, atoms: list[Atom], marks: Marks) -> None:
        self._atoms = atoms
        self._marks = marks
        self._sums = Sums(atoms, marks)
        self._values = self._values_by_atom()
        self._lines: list[Line] = []
        self._frames = [_Frame("body", False, len(atoms) - 1, 0, 0, 0)]
        self._indent = 0  # of the item that is being written
        self._breaks: set[int] = set()

    def run(self) -> list[Line]:
        for i in range(len(self._atoms)):
            self._go_to(i)
            self._write(i)
        return self._lines[:-1] if self._lines and not self._lines[-1].text else self._lines

    def _values_by_atom(self) -> dict[int, tuple[int, Value]]:
        """For the first atom of a value: its last atom, and where it may be broken."""
        starts = [atom.start for atom in self._atoms]
        ends = [atom.end for atom in self._atoms]
        return {
            bisect_left(starts, start): (bisect_right(ends, value.end) - 1, value)
            for start, value in self._marks.values.items()
        }

    # --- getting to the place of an atom

    def _go_to(self, i: int) -> None:
        atom, frame = self._atoms[i], self._frames[-1]
        opened = frame.kind is not None and not frame.flat
        starts = opened and bool(self._sums.element[i])
        closes = opened and frame.closer == i
        self._write_comma(i, frame, closes)
        for n, comment in enumerate(atom.comments):
            self._write_comment(comment, n, frame.inner if starts or closes else self._beside(atom))
        if starts:
            self._begin_item(i, frame)
        elif closes:
            self._new_line(frame.outer)
        elif atom.comments or atom.start in self._breaks:
            self._lines[-1].kind = ""
            self._new_line(self._beside(atom))
        elif self._sums.spaces[i]:
            self._lines[-1].text += " "

    def _write_comma(self, i: int, frame: _Frame, closes: bool) -> None:
        another = self._sums.element[i] == ","
        ends = closes and frame.kind == "list" and not self._ends_empty(i)
        if ends or (another and (frame.kind == "list" or frame.flat)):
            self._lines[-1].text += ","

    def _ends_empty(self, closer: int) -> bool:
        return self._sums.closer.get(closer - 1) == closer

    def _beside(self, atom: Atom) -> int:
        return self._indent if atom.type in _GO_ON else self._indent + CONTINUED

    def _write_comment(self, comment: Comment, n: int, indent: int) -> None:
        if n == 0 and comment.lines_before == 0 and self._lines:
            self._lines[-1].comment = comment.text
            return
        frame = self._frames[-1]
        self._new_line(indent, blank=comment.lines_before > 1 and not frame.fresh)
        self._lines[-1].text = comment.text
        frame.fresh = False

    def _begin_item(self, i: int, frame: _Frame) -> None:
        atom = self._atoms[i]
        self._new_line(frame.inner, blank=atom.lines_before > 1 and not frame.fresh)
        kind = self._marks.items.get(atom.start, "")
        self._lines[-1].kind = kind if kind in _ALIGNED else ""
        self._indent = frame.inner
        frame.fresh = False

    def _new_line(self, indent: int, *, blank: bool = False) -> None:
        self._lines.append(Line(indent, blank=blank))

    # --- writing it

    def _write(self, i: int) -> None:
        atom, line = self._atoms[i], self._lines[-1]
        if atom.type in CLOSERS:
            self._indent = self._frames.pop().item
        if (sign := self._marks.align.get(atom.start)) is not None and line.kind:
            line.columns.setdefault(sign, len(line.text))
        self._break_value(i)
        if atom.tall:
            line.kind = ""
            line.text += indent_block(atom.text, line.indent + INDENT)
        else:
            line.text += atom.text
        if atom.type in OPENERS:
            self._open(i)

    def _break_value(self, i: int) -> None:
        if i not in self._values or self._frames[-1].flat:
            return
        last, value = self._values[i]
        wide = self._columns(i, last) - self._sums.spaces[i] > MAX_WIDTH
        if wide and not self._sums.is_pinned(i, last):
            self._breaks.update(value.breaks)

    def _columns(self, first: int, last: int) -> int:
        """Where the line would end if all from `first` to `last` went on it, and what must."""
        sums = self._sums
        return self._lines[-1].width + sums.width(first, last) + sums.tails[last]

    def _open(self, i: int) -> None:
        around, closer = self._frames[-1], self._sums.closer[i]
        kind = self._marks.groups.get(self._atoms[i].start)
        if kind is None:
            self._frames.append(_Frame(None, around.flat, closer, 0, 0, self._indent))
            return
        flat = around.flat or self._fits_flat(i, closer, kind)
        if not flat:
            self._lines[-1].kind = ""
        outer = self._indent if kind != "list" else self._lines[-1].indent
        self._frames.append(_Frame(kind, flat, closer, outer, outer + INDENT, self._indent))

    def _fits_flat(self, i: int, closer: int, kind: GroupKind) -> bool:
        if not self._sums.may_be_flat(i, kind):
            return False
        return self._columns(i + 1, closer) <= MAX_WIDTH or self._sums.is_pinned(i, closer)
