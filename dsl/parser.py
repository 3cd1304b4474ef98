"""From a file or a text to the AST, or to diagnostics.

Flow: bytes → text (`dsl.reading`) → tokens (`dsl.lexer`) → brackets paired (`dsl.tokens`) → the
LALR machine with the builder inside (`dsl.machine`, `dsl.builder`), and at each token that cannot
stand where it is, `dsl.recovery`. Nothing is raised for a bad file, nothing recurses.

`file` is the AST of a text without errors, else None. `diagnostics` are sorted by position.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from dsl import codes, nodes
from dsl.diagnostics import Diagnostic, Label, has_errors
from dsl.quick_class import dataclass
from dsl.reading import Unreadable, decode, read_bytes
from dsl.source import SourceFile, Span
from dsl.table import Table, load_table

if TYPE_CHECKING:
    from dsl.machine import Machine
    from dsl.recovery import Recovery
    from dsl.tokens import Brackets, Token

MAX_DIAGNOSTICS = 1_000
_MOST_WORK = 400_000


@dataclass(frozen=True, slots=True)
class ParseResult:
    """What came of one file. `source` is always there, if only to name the file."""

    source: SourceFile
    file: nodes.File | None
    diagnostics: tuple[Diagnostic, ...]


def parse_file(path: str | Path, name: str | None = None) -> ParseResult:
    """Reads and parses a file; `name` is what messages show, by default the path as given."""
    shown = name if name is not None else str(path)
    data = read_bytes(Path(path))
    if isinstance(data, Unreadable):
        return _unreadable(shown, data)
    return parse_text(data, shown)


def parse_text(text: str | bytes, name: str) -> ParseResult:
    """Parses a text. Bytes are decoded as UTF-8."""
    decoded = decode(text)
    if isinstance(decoded, Unreadable):
        return _unreadable(name, decoded)
    return _Parse(SourceFile(name, decoded)).run()


def parse_to_tokens(text: str | bytes, name: str) -> tuple[ParseResult, list[Token]]:
    """Parses a text, and returns its tokens too when it has no error."""
    decoded = decode(text)
    if isinstance(decoded, Unreadable):
        return _unreadable(name, decoded), []
    parse = _Parse(SourceFile(name, decoded))
    return parse.run(), parse.tokens


def _unreadable(name: str, fault: Unreadable) -> ParseResult:
    source = SourceFile(name, "")
    found = Diagnostic(
        code=codes.UNREADABLE.code,
        severity=codes.UNREADABLE.severity,
        message=fault.message,
        source=source,
        span=Span(0, 0),
        hint=fault.hint,
    )
    return ParseResult(source, None, (found,))


@cache
def _table() -> Table:
    return load_table()


class _Parse:
    """One run over one text."""

    def __init__(self, source: SourceFile) -> None:
        self._source = source
        self._found: list[Diagnostic] = []
        self.tokens: list[Token] = []

    def run(self) -> ParseResult:
        file = self._parse()
        found = tuple(sorted(self._found, key=lambda d: d.sort_key))
        return ParseResult(self._source, None if has_errors(found) else file, found)

    def _parse(self) -> nodes.File | None:
        from dsl.builder import Builder
        from dsl.lexer import Lexer
        from dsl.machine import Machine
        from dsl.tokens import pair_brackets

        table = _table()
        lexer = Lexer(self._source.text, table.literals, self._report_lexical)
        tokens = self.tokens = self._without_comments(table, lexer.run())
        if lexer.too_deep is not None:
            self._too_deep(Span(lexer.too_deep, lexer.too_deep + 1))
            return None
        if len(tokens) == 1:
            self._empty()
            return None
        machine = Machine(table, Builder(self._report_node), self._too_deep)
        brackets = pair_brackets(tokens, self._source.text)
        recovery: Recovery | None = None
        lacking = brackets.lacking_value(tokens)
        i: int | None = machine.run(tokens, 0, lacking)
        while i is not None and machine.result is None:
            if self._has_enough(machine):
                return None
            recovery = recovery or self._recovery(machine, tokens, brackets)
            i = recovery.recover(i)
            if i is not None:
                i = machine.run(tokens, i, lacking - {i} if i in lacking else lacking)
        return self._finish(machine.result)

    def _has_enough(self, machine: Machine) -> bool:
        """Whether to look for no more errors. Each look goes through all bodies that are open, so
        hundreds of errors inside hundreds of bodies are enough, too."""
        count = len(self._found)
        return count >= MAX_DIAGNOSTICS or count * len(machine.states) > _MOST_WORK

    def _recovery(self, machine: Machine, tokens: list[Token], brackets: Brackets) -> Recovery:
        from dsl.recovery import Recovery

        return Recovery(machine, tokens, brackets, self)

    def _finish(self, file: object) -> nodes.File | None:
        if not isinstance(file, nodes.File):
            return None
        return file

    def _without_comments(self, table: Table, tokens: list[Token]) -> list[Token]:
        """Takes out the comments of other languages, and what the lexer found inside them."""
        from dsl.foreign_comments import foreign_comments, without

        text = self._source.text
        comments = foreign_comments(text, tokens)
        if not comments:
            return tokens
        # What the grammar takes is arithmetic, however much it looks like a comment.
        taken = _taken(table, tokens)
        last_taken = tokens[taken - 1].start if taken else -1
        comments = [c for c in comments if taken < len(tokens) and c.end > last_taken]
        self._found = [d for d in self._found if not _inside_one(d.span, comments)]
        last = -1
        for comment in comments:
            # The lines of one comment give one finding.
            if last < 0 or text[last : comment.start].strip():
                sign = Span(comment.start, comment.start + 2)
                message = f"unexpected `{text[sign.start : sign.end]}`"
                self.report(codes.UNEXPECTED, message, sign, "comments begin with `#`")
            last = comment.end
        return without(tokens, comments)

    def _empty(self) -> None:
        if not self._found:
            hint = "a file holds at least one `workflow name { … }`, or `type`s to import"
            self.report(codes.EMPTY_FILE, "the file is empty", Span(0, 0), hint)

    # --- where findings come in

    @property
    def has_findings(self) -> bool:
        return bool(self._found)

    def report(
        self,
        code: codes.Code,
        message: str,
        span: Span,
        hint: str | None = None,
        labels: tuple[Label, ...] = (),
    ) -> None:
        found = Diagnostic(
            code=code.code,
            severity=code.severity,
            message=message,
            source=self._source,
            span=span,
            hint=hint,
            labels=labels,
        )
        if len(self._found) < MAX_DIAGNOSTICS:
            self._found.append(found)

    def _report_lexical(
        self, code: codes.Code, message: str, start: int, end: int, hint: str | None
    ) -> None:
        self.report(code, message, Span(start, end), hint)

    def _report_node(
        self,
        code: codes.Code,
        message: str,
        span: Span,
        hint: str | None,
        labels: tuple[Label, ...],
    ) -> None:
        self.report(code, message, span, hint, labels)

    def _too_deep(self, span: Span) -> None:
        from dsl.depth import first_beyond
        from dsl.machine import MAX_DEPTH

        span = first_beyond(self.tokens, MAX_DEPTH) or span
        end = min(span.end, span.start + 1)
        hint = "split the workflow, or the expression, into parts"
        self.report(
            codes.TOO_DEEP, "nesting is deeper than 512 levels", Span(span.start, end), hint
        )


def _taken(table: Table, tokens: list[Token]) -> int:
    """How many tokens the grammar takes before it refuses one, or the lexer complained of one."""
    from dsl.builder import Builder
    from dsl.machine import Machine

    machine = Machine(table, Builder(lambda *_: None), lambda _: None)
    for i, token in enumerate(tokens):
        if token.broken or not machine.feed(token):
            return i
    return len(tokens)


def _inside_one(span: Span, comments: list[Span]) -> bool:
    """Whether a place lies in one of the comments, which are in order."""
    k = bisect_right(comments, span.start, key=lambda comment: comment.start) - 1
    return k >= 0 and span.start < comments[k].end
