"""A YAML reader for files people write: JSON's types, exact numbers, and the place of everything.

It works on the parser's events, so that neither PyYAML's guesses (`no` is a string here, `010` too)
nor its expansion of aliases come into play. Refused: aliases and anchors, tags, repeated keys, keys
that are not strings, more than one document, depth over 64, files over 5 MB.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from compiler import json_values
from dsl.quick_class import dataclass
from dsl.source import SourceFile, Span

MAX_BYTES = 5 * 1024 * 1024
MAX_DEPTH = 64

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?\Z")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}


@dataclass(frozen=True, slots=True, eq=False)
class YamlNode:
    """A value and its place. `content` is a scalar, a tuple of nodes, or a dict by key."""

    content: Any
    span: Span
    key_spans: dict[str, Span]

    def value(self) -> Any:
        """Returns the plain JSON value; the depth is bounded by the reader."""
        if isinstance(self.content, dict):
            return {key: child.value() for key, child in self.content.items()}
        if isinstance(self.content, tuple):
            return [child.value() for child in self.content]
        return self.content

    def child(self, step: str | int) -> YamlNode | None:
        if isinstance(self.content, dict) and isinstance(step, str):
            found = self.content.get(step)
            return found if isinstance(found, YamlNode) else None
        if isinstance(self.content, tuple) and isinstance(step, int):
            return self.content[step] if step < len(self.content) else None
        return None


class YamlProblem(Exception):
    """What is wrong with a YAML file, and where."""

    def __init__(self, message: str, span: Span, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.hint = hint


def read_source(path: Path, name: str) -> SourceFile:
    """Reads and decodes a file.

    Raises:
      YamlProblem: it is not there, not a file, too large, or not UTF-8 text.
    """
    nowhere = Span(0, 0)
    try:
        if path.is_dir():
            hint = "name the `*.actions.yaml` files inside it"
            raise YamlProblem("this is a directory, not a catalog file", nowhere, hint)
        if path.stat().st_size > MAX_BYTES:
            hint = "split it into several `*.actions.yaml` files"
            raise YamlProblem("the catalog is larger than 5 MB", nowhere, hint)
        data = path.read_bytes()
    except FileNotFoundError:
        raise YamlProblem("there is no such catalog file", nowhere, "check the path") from None
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise YamlProblem(f"the catalog cannot be read: {reason}", nowhere) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise YamlProblem(
            f"the catalog is not UTF-8 text (byte {error.start})", nowhere, "save it as UTF-8"
        ) from None
    return SourceFile(name, text.replace("\r\n", "\n").replace("\r", "\n"))


def read_yaml(source: SourceFile) -> YamlNode:
    """Parses one YAML document.

    Raises:
      YamlProblem: not YAML, or YAML that is refused here.
    """
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Reader(source).read(yaml.parse(source.text, Loader=loader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = 0 if mark is None else min(mark.index, len(source.text))
        problem = getattr(error, "problem", None) or "it holds characters that YAML does not allow"
        hint = "a catalog is a list under `actions:`; check indentation, quotes and colons there"
        if _is_tab(source.text, place):
            hint = "YAML takes no tabs: indent with spaces"
        raise YamlProblem(f"not YAML: {problem}", Span(place, place + 1), hint) from None


def _is_tab(text: str, place: int) -> bool:
    """Whether the parser stumbled over a tab: there, or in what indents that line."""
    start = text.rfind("\n", 0, place) + 1
    indent = text[start : place + 1]
    return text.startswith("\t", place) or (not indent.strip() and "\t" in indent)


@dataclass(slots=True)
class _Open:
    """A collection that is being read; `key` is the one that waits for its value."""

    start: int
    items: list[YamlNode] | None
    entries: dict[str, YamlNode]
    key_spans: dict[str, Span]
    key: str | None = None


class _Reader:
    def __init__(self, source: SourceFile) -> None:
        self._source = source
        self._open: list[_Open] = []
        self._document: YamlNode | None = None

    def read(self, events: Any) -> YamlNode:
        for event in events:
            self._take(type(event).__name__, event)
        if self._document is None:
            raise YamlProblem("the file is empty", Span(0, 0), "start it with `actions:`")
        return self._document

    def _take(self, kind: str, event: Any) -> None:
        match kind:
            case "AliasEvent":
                raise YamlProblem("aliases are not allowed here", self._span(event), "write it out")
            case "DocumentStartEvent" if self._document is not None:
                raise YamlProblem("only one YAML document may stand in a file", self._span(event))
            case "MappingStartEvent" | "SequenceStartEvent":
                self._start(kind, event)
            case "MappingEndEvent" | "SequenceEndEvent":
                self._end(event)
            case "ScalarEvent":
                self._refuse_marks(event)
                self._scalar(event)

    def _span(self, event: Any) -> Span:
        return Span(event.start_mark.index, max(event.end_mark.index, event.start_mark.index + 1))

    def _refuse_marks(self, event: Any) -> None:
        if event.anchor is not None:
            raise YamlProblem("anchors are not allowed here", self._span(event), "remove it")
        if event.tag is not None:
            raise YamlProblem("tags are not allowed here", self._span(event), "remove it")

    def _start(self, kind: str, event: Any) -> None:
        self._refuse_marks(event)
        self._refuse_key(event)
        if len(self._open) >= MAX_DEPTH:
            raise YamlProblem(f"nested deeper than {MAX_DEPTH} levels", self._span(event))
        items: list[YamlNode] | None = [] if kind == "SequenceStartEvent" else None
        self._open.append(_Open(event.start_mark.index, items, {}, {}))

    def _end(self, event: Any) -> None:
        done = self._open.pop()
        text = self._source.text[done.start : event.end_mark.index]
        span = Span(done.start, max(done.start + len(text.rstrip()), done.start + 1))
        content: Any = done.entries if done.items is None else tuple(done.items)
        self._put(YamlNode(content, span, done.key_spans))

    def _refuse_key(self, event: Any) -> None:
        if self._open and self._open[-1].items is None and self._open[-1].key is None:
            raise YamlProblem("a key must be a word or a string", self._span(event))

    def _scalar(self, event: Any) -> None:
        top = self._open[-1] if self._open else None
        if top is not None and top.items is None and top.key is None:
            self._key(top, event)
            return
        self._put(YamlNode(self._plain_value(event), self._span(event), {}))

    def _key(self, top: _Open, event: Any) -> None:
        if event.value in top.key_spans:
            first = self._source.position(top.key_spans[event.value].start)
            raise YamlProblem(
                f'key "{event.value}" stands twice; the first is in line {first.line}',
                self._span(event),
                "remove one of them",
            )
        top.key_spans[event.value] = self._span(event)
        top.key = event.value

    def _plain_value(self, event: Any) -> Any:
        text: str = event.value
        if not event.implicit[0]:  # quoted
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _NUMBER.match(text):
            try:
                return json_values.parse_number(text)
            except json_values.UnstorableValue as error:
                raise YamlProblem(str(error), self._span(event)) from None
        return text

    def _put(self, node: YamlNode) -> None:
        if not self._open:
            self._document = node
            return
        top = self._open[-1]
        if top.items is not None:
            top.items.append(node)
        elif top.key is not None:
            top.entries[top.key] = node
            top.key = None
