"""What all pictures show: boxes in tree order, each with lanes of boxes inside it.

A picture needs a file that parses, and nothing else: no catalog, and no workflow without errors.
All text has passed `plain`, is on one line and is never longer than MAX_TEXT.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, assert_never

from dsl.nodes import (
    Action,
    Attribute,
    BareKey,
    Block,
    Expr,
    Fail,
    Foreach,
    If,
    Name,
    Parallel,
    Repeat,
    Sequence,
    Set,
    Sleep,
    Statement,
    Switch,
    WaitEvent,
    While,
    Workflow,
)
from dsl.plain import plain
from dsl.source import SourceFile, Span

MAX_TEXT = 120

Kind = Literal[
    "workflow",
    "action",
    "sequence",
    "parallel",
    "if",
    "switch",
    "repeat",
    "while",
    "foreach",
    "wait_event",
    "set",
    "fail",
    "sleep",
]
# Strings stay as they are, comments go, a stretch of space is one blank.
_PIECE = re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*"""|"(?:[^"\\\n]|\\.)*"|(#[^\n]*)|(\s+)', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Lane:
    """Boxes that follow one another; `label` says when the lane is taken, if that is a question."""

    label: str
    boxes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Box:
    """A statement. `name` is its key, if it has one, `text` what it is about (an action's name, a
    condition), `details` what else is set on it. `state` is the status that its executions have, in
    the picture of an instance; it only colours the box."""

    kind: Kind
    name: str
    text: str
    description: str
    details: tuple[str, ...]
    lanes: tuple[Lane, ...]
    state: str = ""

    @property
    def headline(self) -> str:
        """The box in one line, as it begins in the source."""
        if self.kind in ("action", "set"):
            return f"{self.kind} {self.name} = {self.text}"
        if self.kind == "wait_event":
            return f"wait_event {self.name} on {self.text}"
        named = f"{self.name}: {self.text}" if self.name and self.text else self.name or self.text
        return f"{self.kind} {named}".rstrip()

    @property
    def lines(self) -> list[str]:
        """Everything about the box: its headline, its description, its details."""
        described = [self.description] if self.description else []
        return [self.headline, *described, *self.details]

    @property
    def ends(self) -> bool:
        """Whether nothing runs after it in its lane."""
        return self.kind == "fail"


@dataclass(frozen=True, slots=True)
class Picture:
    """`boxes` are in tree order: the workflow first, every box before those inside it."""

    boxes: tuple[Box, ...]


@dataclass(slots=True)
class _Draft:
    kind: Kind
    name: str = ""
    text: str = ""
    description: str = ""
    details: list[str] = field(default_factory=list)
    blocks: list[tuple[str, tuple[Statement, ...]]] = field(default_factory=list)
    lanes: list[tuple[str, list[int]]] = field(default_factory=list)


def draw(workflow: Workflow, source: SourceFile) -> Picture:
    """Returns the picture of a workflow."""
    return _Drawing(source).run(workflow)


class _Drawing:
    def __init__(self, source: SourceFile) -> None:
        self._source = source

    def run(self, workflow: Workflow) -> Picture:
        root = _Draft("workflow", name=plain(workflow.name.text))
        if workflow.description:
            root.description = _short(workflow.description)
        root.details += self._attributes(workflow.attributes)
        root.blocks.append(("", workflow.body.statements))
        drafts = self._all(root)
        return Picture(tuple(_finished(draft) for draft in drafts))

    def _all(self, root: _Draft) -> list[_Draft]:
        """All drafts in tree order; no walk recurses."""
        drafts = [root]
        pending = _inside(root)
        while pending:
            lane, statement = pending.pop()
            draft = self._draft(statement)
            lane.append(len(drafts))
            drafts.append(draft)
            pending += _inside(draft)
        return drafts

    def _draft(self, statement: Statement) -> _Draft:
        draft = self._of_kind(statement)
        if not isinstance(statement, Set | Fail | Sleep) and statement.description:
            draft.description = _short(statement.description)
        return draft

    def _of_kind(self, statement: Statement) -> _Draft:
        match statement:
            case Action():
                name = statement.action.text
                details = self._attributes(statement.attributes)
                return _Draft("action", statement.key.text, plain(name), details=details)
            case Set():
                return _Draft("set", statement.name.text, self._text(statement.value))
            case Fail():
                return _Draft("fail", text=self._fail(statement))
            case Sleep():
                return _Draft("sleep", text=self._line(statement.duration.span))
            case WaitEvent():
                return self._wait_event(statement)
            case If():
                return self._if(statement)
            case Switch():
                return self._switch(statement)
            case Sequence() | Parallel():
                return self._group(statement)
            case Repeat() | While() | Foreach():
                return self._loop(statement)
            case _:
                assert_never(statement)

    def _fail(self, statement: Fail) -> str:
        message = "" if statement.message is None else " " + self._text(statement.message)
        return _short(self._text(statement.code) + message)

    def _wait_event(self, statement: WaitEvent) -> _Draft:
        draft = _Draft("wait_event", statement.key.text, _short(f'"{statement.event_type}"'))
        if statement.correlate is not None:
            draft.details.append(f"correlate {self._text(statement.correlate)}")
        if statement.timeout is not None:
            after = f"timeout {self._line(statement.timeout.span)}"
            if statement.timeout_body is None:
                draft.details.append(after)
            else:
                draft.blocks.append((after, statement.timeout_body.statements))
        draft.details += self._attributes(statement.attributes)
        return draft

    def _if(self, statement: If) -> _Draft:
        """`else if` is a further lane, as it is written."""
        draft = _Draft("if", _key(statement.key), self._text(statement.condition))
        draft.blocks.append(("then", statement.then.statements))
        otherwise = statement.otherwise
        while otherwise is not None:
            first = otherwise.statements[0] if len(otherwise.statements) == 1 else None
            if not (isinstance(first, If) and first.else_if):
                draft.blocks.append(("else", otherwise.statements))
                break
            draft.blocks.append((f"else if {self._text(first.condition)}", first.then.statements))
            otherwise = first.otherwise
        return draft

    def _switch(self, statement: Switch) -> _Draft:
        draft = _Draft("switch", _key(statement.key), self._text(statement.subject))
        for case in statement.cases:
            values = _short(", ".join(self._line(value.span) for value in case.values))
            draft.blocks.append((f"case {values}", case.body.statements))
        if statement.default is not None:
            draft.blocks.append(("default", statement.default.statements))
        return draft

    def _group(self, statement: Sequence | Parallel) -> _Draft:
        details = self._attributes(statement.attributes)
        if isinstance(statement, Parallel):
            draft = _Draft("parallel", _key(statement.key), details=details)
            draft.blocks += [("", (branch,)) for branch in statement.branches.statements]
            return draft
        draft = _Draft("sequence", _key(statement.key), details=details)
        draft.blocks.append(("", statement.body.statements))
        for label, block in (("on error", statement.on_error), ("finally", statement.finally_)):
            if block is not None:
                draft.blocks.append((label, block.statements))
        return draft

    def _loop(self, statement: Repeat | While | Foreach) -> _Draft:
        details = self._attributes(statement.attributes) + self._collects(statement.body)
        draft = _Draft("while", _key(statement.key), details=details)
        draft.blocks.append(("", statement.body.statements))
        match statement:
            case Repeat(count=count, counter=counter):
                draft.kind = "repeat"
                draft.text = self._text(count) + (f" as {counter.text}" if counter else "")
            case While(condition=condition):
                draft.text = self._text(condition)
            case Foreach(item=item, index=index, collection=collection):
                draft.kind = "foreach"
                names = item.text + (f", {index.text}" if index else "")
                draft.text = f"{names} in {self._text(collection)}"
        return draft

    def _collects(self, body: Block) -> list[str]:
        return [f"collect {plain(binding.name.text)}" for binding in body.collects]

    def _attributes(self, attributes: Iterable[Attribute]) -> list[str]:
        return [self._line(attribute.span) for attribute in attributes]

    def _text(self, expr: Expr | BareKey) -> str:
        return self._line(expr.span)

    def _line(self, span: Span) -> str:
        return _short(_PIECE.sub(_on_one_line, self._source.text[span.start : span.end]))


def _on_one_line(match: re.Match[str]) -> str:
    if match.group(1):
        return ""
    return " " if match.group(2) else match.group()


def _short(text: str) -> str:
    text = plain(" ".join(text[: 4 * MAX_TEXT].split()))
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def _key(name: Name | None) -> str:
    return "" if name is None else name.text


def _inside(draft: _Draft) -> list[tuple[list[int], Statement]]:
    """The statements of a draft with the lanes they go to, last first."""
    found: list[tuple[list[int], Statement]] = []
    for label, statements in draft.blocks:
        lane: list[int] = []
        draft.lanes.append((label, lane))
        found += [(lane, statement) for statement in statements]
    found.reverse()
    return found


def _finished(draft: _Draft) -> Box:
    lanes = tuple(Lane(label, tuple(boxes)) for label, boxes in draft.lanes)
    return Box(draft.kind, draft.name, draft.text, draft.description, tuple(draft.details), lanes)
