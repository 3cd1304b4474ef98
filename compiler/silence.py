"""Warnings silenced by a comment on their line: `# wf: allow WF220`.

Several codes stand with commas between them. Errors cannot be silenced, and a comment that
silences nothing is a warning itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from compiler import codes
from compiler.suggest import did_you_mean
from dsl.codes import SYNTAX_CODES
from dsl.diagnostics import Diagnostic
from dsl.quick_class import dataclass, field
from dsl.source import SourceFile, Span

_WORD = "wf:"
# Strings come first, so that a `#` inside one begins no comment.
_PIECES = re.compile(
    r'"""(?:\\.|[^\\])*?(?:"""|\Z)|"(?:\\.|[^"\\\n])*"?|(?P<comment>#[^\n]*)', re.DOTALL
)
_DIRECTIVE = re.compile(r"#\s*wf:\s*(?P<word>\S*)(?P<rest>.*)")
_CODE = re.compile(r"\s*,?\s*(?P<code>[A-Za-z]+[0-9]+)")


@dataclass(slots=True, eq=False)
class _Allow:
    """One code of one comment."""

    code: str
    span: Span
    line: int
    used: bool = False


@dataclass(slots=True)
class _Comments:
    allowed: list[_Allow] = field(default_factory=list)
    misfits: list[Span] = field(default_factory=list)


def silence(found: Sequence[Diagnostic], sources: Iterable[SourceFile]) -> list[Diagnostic]:
    """Returns the findings without the silenced ones, and with what is wrong with the comments."""
    kept = list(found)
    for source in sources:
        if _WORD in source.text:
            kept = _silence_one(kept, source)
    return kept


def _silence_one(found: list[Diagnostic], source: SourceFile) -> list[Diagnostic]:
    comments = _read(source)
    by_place: dict[tuple[int, str], list[_Allow]] = {}
    for allow in comments.allowed:
        by_place.setdefault((allow.line, allow.code), []).append(allow)
    kept = []
    for diagnostic in found:
        line = source.position(diagnostic.span.start).line
        here = by_place.get((line, diagnostic.code), [])
        if diagnostic.source is not source or diagnostic.severity == "error" or not here:
            kept.append(diagnostic)
            continue
        here[0].used = True
    return [*kept, *_complaints(source, comments)]


def _read(source: SourceFile) -> _Comments:
    comments = _Comments()
    for piece in _PIECES.finditer(source.text):
        text, start = piece.group("comment"), piece.start()
        directive = None if text is None else _DIRECTIVE.match(text)
        if directive is None:
            continue
        line = source.position(start).line
        position, count = directive.start("rest"), 0
        while directive.group("word") == "allow":
            code = _CODE.match(text, position)
            if code is None:
                break
            span = Span(start + code.start("code"), start + code.end("code"))
            comments.allowed.append(_Allow(code.group("code"), span, line))
            position, count = code.end(), count + 1
        if not count:
            comments.misfits.append(Span(start, start + len(text.rstrip())))
    return comments


def _complaints(source: SourceFile, comments: _Comments) -> Iterator[Diagnostic]:
    known = {code.code: code for code in (*SYNTAX_CODES, *codes.COMPILER_CODES)}
    for span in comments.misfits:
        hint = "write `# wf: allow WF220`"
        yield _complaint(source, span, "this comment says nothing that wf understands", hint)
    for allow in comments.allowed:
        if allow.used:
            continue
        code = known.get(allow.code)
        if code is None:
            message, hint_text = f'there is no code "{allow.code}"', did_you_mean(allow.code, known)
        elif code.severity == "error":
            message, hint_text = f"{allow.code} is an error and cannot be silenced", "remove this"
        else:
            message, hint_text = f"there is no {allow.code} in this line to silence", "remove this"
        yield _complaint(source, allow.span, message, hint_text)


def _complaint(source: SourceFile, span: Span, message: str, hint: str | None) -> Diagnostic:
    code = codes.UNUSED_ALLOW
    return Diagnostic(
        code=code.code,
        severity=code.severity,
        message=message,
        source=source,
        span=span,
        hint=hint,
    )
