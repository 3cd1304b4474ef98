"""The canonical form of `.wf` texts, what `wf fmt` writes.

Flow: the parser says that the text is valid → its tokens once more, through the machine with a
`MarkBuilder` → atoms with their comments → lines → text. Only space, the commas of lists and the
`${ }` around a bare reference change; that no more has changed is checked on every result, by
its tokens.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dsl.diagnostics import Diagnostic, InternalError
from dsl.parser import parse_file, parse_to_tokens
from dsl.quick_class import dataclass
from dsl.reading import Unreadable, read_bytes

if TYPE_CHECKING:
    from dsl.builder import Builder
    from dsl.format_atoms import Atom
    from dsl.format_marks import Marks
    from dsl.table import Table
    from dsl.tokens import Token


@dataclass(frozen=True, slots=True)
class FormatResult:
    """`text` is the canonical one, `before` the one given, decoded, line ends as they were.

    Both are None when the text has an error; `diagnostics` then say which.
    """

    before: str | None
    text: str | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def changed(self) -> bool:
        return self.text != self.before


def format_file(path: Path) -> FormatResult:
    """Returns the canonical form of a file, which is only read."""
    data = read_bytes(path)
    if isinstance(data, Unreadable):
        return FormatResult(None, None, parse_file(path).diagnostics)
    return format_text(data, str(path))


def format_text(text: str | bytes, name: str) -> FormatResult:
    """Returns the canonical form of a text; `name` is what messages show.

    Raises:
      InternalError: the result would not mean the same.
    """
    parsed, tokens = parse_to_tokens(text, name)
    if parsed.file is None:
        return FormatResult(None, None, parsed.diagnostics)
    from dsl.format_atoms import make_atoms
    from dsl.format_layout import lay_out
    from dsl.format_lines import join_lines

    marks = _marks(tokens)
    tokens = _split(tokens, marks)
    atoms = make_atoms(parsed.source.text, tokens, marks)
    _part_workflows(atoms, marks)
    result = join_lines(lay_out(atoms, marks))
    if result != parsed.source.text:  # nothing else could mean something else
        _check_same(tokens, marks, result, name)
    before = text.decode("utf-8") if isinstance(text, bytes) else text
    return FormatResult(before, result, parsed.diagnostics)


def comments_of(text: str) -> tuple[str, ...]:
    """Returns the comments of a valid text in order, without blanks at their ends."""
    from dsl.format_atoms import make_atoms

    tokens = _tokens(text)
    marks = _marks(tokens)
    return tuple(c.text for atom in make_atoms(text, tokens, marks) for c in atom.comments)


def _marks(tokens: list[Token]) -> Marks:
    """What the grammar says about the tokens of a valid text."""
    from dsl.format_marks import MarkBuilder
    from dsl.machine import Machine

    builder = MarkBuilder()
    machine = Machine(_table(), cast("Builder", builder), _ignore)
    if (refused := machine.run(tokens, 0)) < len(tokens):
        raise InternalError(f"a valid text is refused at offset {tokens[refused].start}")
    return builder.marks


def _split(tokens: list[Token], marks: Marks) -> list[Token]:
    """Parts the `>=` that ends a type and begins its value, as in `list<int>= [3]`."""
    from dsl.tokens import Token

    found: list[Token] = []
    for token in tokens:
        if token.type != ">=" or token.start not in marks.close_before:
            found.append(token)
            continue
        middle = token.start + 1
        found += [Token(">", ">", token.start, middle), Token("=", "=", middle, token.end)]
    return found


def _tokens(text: str) -> list[Token]:
    from dsl.lexer import Lexer

    return Lexer(text, _table().literals, _ignore).run()


@cache
def _table() -> Table:
    from dsl.table import load_table

    return load_table()


def _ignore(*_found: Any) -> None:
    """The parser has reported everything already."""


def _part_workflows(atoms: list[Atom], marks: Marks) -> None:
    """Asks for a blank line before each workflow but one that begins the file."""
    for i, atom in enumerate(atoms):
        if i == 0 or atom.type != "workflow" or marks.items.get(atom.start) != "workflow":
            continue
        own = [comment for comment in atom.comments if comment.lines_before]
        lines = [comment.lines_before for comment in own] + [atom.lines_before]
        if max(lines) > 1:
            continue
        if own:
            own[0].lines_before = 2
        else:
            atom.lines_before = 2


def _check_same(tokens: list[Token], marks: Marks, result: str, name: str) -> None:
    """Compares types and values of all tokens but commas, and those that were left out."""
    kept = [t for t in tokens if t.type != "," and t.start not in marks.dropped]
    made = [t for t in _tokens(result) if t.type != ","]
    if len(kept) != len(made) or not all(map(_mean_the_same, kept, made)):
        raise InternalError(f"formatting {name} would change its meaning")


def _mean_the_same(before: Token, after: Token) -> bool:
    if before.type != after.type:
        return False
    if before.text == after.text:
        return True
    # Only a block string may be written otherwise, with other space in front of its lines.
    return before.value is not None and repr(before.value) == repr(after.value)
