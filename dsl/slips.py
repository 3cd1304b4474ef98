"""Slips of people who come from other languages: what they wrote, and what to write here.

`Slips.find` is asked by `dsl.recovery` for each token that cannot stand where it is. A slip says
what is wrong and how to go on as if the right thing stood there, so that one slip gives one
finding and hides nothing behind it. It looks at the tokens and asks the machine; it changes
neither.
"""

from __future__ import annotations

from collections.abc import Callable

from dsl.expected import ROOT_WORDS, STATEMENT_WORDS, phrase_expected, phrase_found
from dsl.machine import Machine
from dsl.meant import Meant
from dsl.misplaced import Misplaced
from dsl.plain import plain
from dsl.slip import Slip, span_of
from dsl.source import Span
from dsl.tokens import Brackets, Token

FOREIGN_LITERALS = {
    "True": "true",
    "TRUE": "true",
    "False": "false",
    "FALSE": "false",
    **dict.fromkeys(("None", "none", "nil", "NULL", "Null", "undefined"), "null"),
}
_ELSE_IF = frozenset(("elif", "elsif", "elseif"))
_LETS = frozenset(("let", "const", "local", "int", "string", "bool", "decimal", "float", "auto"))
_LONGEST = 40  # tokens of an action's name that are looked at, characters of a type shown
_WORKFLOWS = frozenset(("def", "function", "func", "flow", "process", "pipeline", "job"))
_BRACES = "a body stands in braces: `{ … }`"
_ON_ERROR = "write `sequence { … } on_error { … }`"
_FAIL = 'write `fail CODE "message"`'
_ACTION = "a step is written `action key = name(…)`"
_LOOP = "a loop cannot be left early: put the rest of its body into an `if`, or use `while`"
# Words that begin a statement elsewhere: what to use instead.
_INSTEAD = {
    "return": "what a workflow gives back stands in its `output { … }`",
    **dict.fromkeys(("break", "continue"), _LOOP),
    **dict.fromkeys(("catch", "except", "rescue"), _ON_ERROR),
    **dict.fromkeys(("throw", "raise"), _FAIL),
    **dict.fromkeys(("await", "run", "step", "task", "function", "func", "def", "fn"), _ACTION),
    **dict.fromkeys(("then", "begin", "end"), _BRACES),
    "wait": 'write `wait_event key on "type" { … }`',
    "do": "write `repeat n { … }` or `while … { … }`",
    "loop": "write `repeat n { … }` or `while … { … }`",
}
# The same, where the word of this language can be put in its place.
_REPLACED = {
    "try": ("sequence", _ON_ERROR),
    "unless": ("if", "write `if not …`"),
    "until": ("while", "write `while not …`"),
    "branch": ("sequence", "write `sequence { … }`"),
}


class Slips:
    """Knows the slips of one text."""

    def __init__(self, machine: Machine, tokens: list[Token], brackets: Brackets) -> None:
        self._machine = machine
        self._tokens = tokens
        self._brackets = brackets
        self._meant = Meant(tokens)
        self._tries = 0  # `try`s that were found
        self._nameless: Token | None = None  # the call whose arguments have no names
        self._finders: tuple[Callable[[int], Slip | None], ...] = (
            self._outside,
            self._catch,
            self._switch_word,
            Misplaced(machine, tokens, brackets).find,
            self._equals,
            self._statement_word,
            self._assignment,
            self._bare_call,
            self._missing_brace,
            self._colon_body,
            self._comparison,
            self._list_type,
            self._nullable,
            self._optional,
            self._set_path,
            self._entry,
            self._argument,
            self._value_name,
        )

    def find(self, i: int) -> Slip | None:
        """Returns what slip the refused token `i` shows, if any."""
        for finder in self._finders:
            if slip := finder(i):
                return slip
        return None

    def in_mended_body(self) -> bool:
        """Whether the innermost open body has a `{` that was put in."""
        values = reversed(self._machine.values)
        braces = (v for v in values if isinstance(v, Token) and v.type == "{")
        innermost = next(braces, None)
        return innermost is not None and not innermost.text

    def begins(self, k: int) -> bool:
        """Whether the name at `k`, the first of its line, looks like the start of a statement."""
        if not self._machine.accepts("sequence", "{"):
            return False
        word = self._tokens[k].text
        known = word in _INSTEAD or word in _REPLACED or word in _ELSE_IF
        return known or self._call_at(k) is not None or self._assigned_at(k) is not None

    # --- statements

    def _outside(self, i: int) -> Slip | None:
        """A statement outside of all workflows: go on as if one had begun."""
        token = self._tokens[i]
        fits = self._machine.accepts("workflow", "NAME", "{", token.type)
        if not fits or token.type not in STATEMENT_WORDS | {"var", "input", "output"}:
            return None
        message = f"`{token.type}` stands outside of a workflow"
        hint = "put it inside the braces of `workflow name { … }`"
        if i and self._tokens[i - 1].type == "}":
            hint = "the workflow ends at the `}` before; move that down"
        return Slip(message, span_of(token), hint, feed=("workflow", "NAME", "{"), resume=i)

    def _statement_word(self, i: int) -> Slip | None:
        token, following = self._tokens[i], self._next(i)
        if token.type != "NAME" or following.type == "=":
            return None
        word = token.text
        if word in _ELSE_IF and self._machine.accepts("else", "if"):
            return self._wrong(i, "write `else if`", feed=("else", "if"), resume=i + 1)
        if word in _ELSE_IF and self.in_mended_body() and self._machine.accepts("}", "else"):
            return self._wrong(i, "write `else if`", feed=("}", "else", "if"), resume=i + 1)
        if word == "then" and self._machine.accepts("{") and following.type in STATEMENT_WORDS:
            return self._wrong(i, _BRACES, feed=("{",), resume=i + 1)
        if word in _WORKFLOWS and self._machine.accepts("workflow", following.type):
            return self._wrong(i, "write `workflow`", feed=("workflow",), resume=i + 1)
        if not self._machine.accepts("sequence", "{"):
            return None
        if word in _ELSE_IF:
            return self._wrong(i, "`else if` follows the `}` of an `if`")
        if word == "for":
            return self._for(i)
        if word in _REPLACED:
            self._tries += word == "try"
            instead, hint = _REPLACED[word]
            return self._wrong(i, hint, feed=(instead,), resume=i + 1)
        return self._wrong(i, _INSTEAD[word]) if word in _INSTEAD else None

    def _for(self, i: int) -> Slip:
        hint = "write `foreach item in … { … }`, or `repeat n as i { … }` to count"
        head = tuple(token.type for token in self._tokens[i + 1 : i + 5])
        if head[:2] == ("NAME", "in") or (head[1:2] == (",",) and head[3:] == ("in",)):
            return self._wrong(i, hint, feed=("foreach",), resume=i + 1)
        return self._wrong(i, hint)

    def _switch_word(self, i: int) -> Slip | None:
        """`when` and `else` in a `switch`."""
        instead = {"when": "case", "else": "default"}.get(self._tokens[i].text)
        if instead is None or not self._machine.accepts(instead):
            return None
        return self._wrong(i, f"write `{instead}`", feed=(instead,), resume=i + 1)

    def _equals(self, i: int) -> Slip | None:
        """`set a := 3`, `set a == 3` and `action a: b.c()`."""
        token = self._tokens[i]
        if token.type not in (":", "==") or self._machine.accepted() != {"="}:
            return None
        if self._tokens[i - 2].type == "action":
            return self._wrong(i, f"write `action {plain(self._tokens[i - 1].text)} = …`")
        resume = i + 2 if self._next(i).type == "=" else i + 1
        return self._wrong(i, "write `=`", feed=("=",), resume=resume)

    def _catch(self, i: int) -> Slip | None:
        """The `catch` of a `try` that was reported: its body is one of `on_error`."""
        token = self._tokens[i]
        if token.text not in ("catch", "except", "rescue") or not self._tries:
            return None
        k = i + 1
        while k not in self._brackets.bodies:
            if k >= len(self._tokens) or (self._tokens[k].first and k > i):
                return None
            k += 1
        if not self._machine.accepts("on_error", "{"):
            return None
        self._tries -= 1
        return Slip("", span_of(token), feed=("on_error",), resume=k)

    def _assignment(self, i: int) -> Slip | None:
        token = self._tokens[i]
        if not self._machine.accepts("set", "NAME", "="):
            return None
        at = i
        if token.text in _LETS and self._next(i).type == "NAME":
            at = i + 1
        name, sign = plain(self._tokens[at].text), self._assigned_at(at)
        if token.type != "NAME" or sign is None:
            return None
        if sign != "=":
            return self._wrong(i, f"write `set {name} = var.{name} {sign} 1`")
        if call := self._call_at(at + 2):
            return self._wrong(i, f"write `action {name} = {plain(call)}(…)`")
        return self._wrong(i, f"write `set {name} = …`", feed=("set",), resume=at)

    def _assigned_at(self, k: int) -> str | None:
        """What stands behind the name at `k`: `=`, or the sign of `+=` and `++`."""
        sign, second = self._next(k), self._next(k + 1)
        if self._tokens[k].type != "NAME":
            return None
        if sign.type in ("+", "-") and second.type in ("=", "+", "-") and not second.first:
            return sign.type
        return "=" if sign.type == "=" else None

    def _set_path(self, i: int) -> Slip | None:
        """`set var.a = 4`, `var.a = 4` and `set a += 1`."""
        token, before = self._tokens[i], self._tokens[i - 1] if i else self._tokens[i]
        if token.type == "." and before.type == "var" and self._next(i).text.isidentifier():
            name = plain(self._next(i).text)
            span, hint = Span(before.start, self._next(i).end), f"write `set {name} = …`"
            message = f"`var.{name}` is read, not set"
            if self._tokens[i - 2].type == "set" and self._drops_to(1, "NAME", "="):
                return Slip(message, span, hint, drop=1, resume=i + 1)
            if self._next(i + 1).type == "=" and self._drops_to(1, "set", "NAME", "="):
                return Slip(message, span, hint, drop=1, feed=("set",), resume=i + 1)
        if token.type in ("+", "-") and self._machine.accepted() == {"="}:
            name = plain(before.text)
            hint = f"write `set {name} = var.{name} {token.type} …`"
            return self._wrong(i, hint)
        return None

    def _bare_call(self, i: int) -> Slip | None:
        """`shop.note(…)` without `action key =`, as a statement or after `action`."""
        if self._machine.accepts("sequence", "{") and (call := self._call_at(i)):
            return self._wrong(i, f"write `action key = {plain(call)}(…)`")
        if i < 2 or self._tokens[i - 2].type != "action" or self._machine.accepted() != {"="}:
            return None
        before = self._tokens[i - 1]
        call = before.text if self._tokens[i].type == "(" else self._call_at(i - 1)
        if call is None:
            return None
        hint = f"write `action key = {plain(call)}(…)`"
        return Slip("the action has no key", span_of(before), hint)

    def _missing_brace(self, i: int) -> Slip | None:
        """A statement on the line after a head without its `{`."""
        token = self._tokens[i]
        if i == 0 or not token.first or not self._machine.accepts("{", token.type):
            return None
        if self._machine.accepts("INT"):
            return None  # a value is missing, and this would be an object
        if token.type not in STATEMENT_WORDS | {"var", "input", "output", "description", "case"}:
            return None
        before = self._tokens[i - 1]
        message = f"expected `{{` after {phrase_found(before)}, found {phrase_found(token)}"
        return Slip(message, Span(before.end, before.end), "add `{`", feed=("{",), resume=i)

    def _colon_body(self, i: int) -> Slip | None:
        """`if x:` and `case 1:`."""
        following = self._next(i)
        if self._tokens[i].type != ":" or not self._machine.accepts("{"):
            return None
        if following.type == "{":
            return self._wrong(i, "leave the `:` out", resume=i + 1)
        if self._machine.accepts("{", following.type):
            return self._wrong(i, _BRACES, feed=("{",), resume=i + 1)
        return None

    # --- values

    def _comparison(self, i: int) -> Slip | None:
        token, before = self._tokens[i], self._tokens[i - 1] if i else self._tokens[i]
        joined = before.type + token.type if before.end == token.start else ""
        instead = {"===": "==", "!==": "!=", "<>": "!="}.get(joined)
        if instead:
            span = Span(before.start, token.end)
            return Slip(f"unexpected `{joined}`", span, f"write `{instead}`", resume=i + 1)
        if token.type == "=" and self._machine.accepts("=="):
            return self._wrong(i, "comparison is `==`", feed=("==",), resume=i + 1)
        return None

    def _value_name(self, i: int) -> Slip | None:
        """A bare name where a value stands: the name before the refused token, or that itself."""
        at, drop = i - 1, 1
        itself = self._tokens[i].type == "NAME" and not self._tokens[i].first
        if itself and self._machine.accepts("INT") and not self._machine.accepts("sequence"):
            at, drop = i, 0
        name = self._tokens[at] if at >= 0 else self._tokens[i]
        if name.type != "NAME" or name.inside or not self._drops_to(drop, "INT"):
            return None
        if drop and self._machine.spans[-1] != (name.start, name.end):
            return None
        shown = plain(name.text)
        if call := self._call_at(at):
            message = f"`{plain(call)}` is an action, not a value"
            span, hint = Span(name.start, name.start + len(call)), f"{_ACTION}, on its own"
        else:
            message, span = f'"{shown}" is not a value', span_of(name)
            meant = FOREIGN_LITERALS.get(name.text)
            hint = f"write `{meant}`" if meant else self._meant.reading_hint(at)
        return Slip(message, span, hint, drop, ("INT",), self._after_steps(at, call))

    def _after_steps(self, at: int, call: str | None) -> int:
        """The token behind `name.step[0]`, or behind the call of an action."""
        k = at + 1
        while call and self._tokens[k].type != "(":
            k += 1
        while True:
            if self._tokens[k].type == "." and self._next(k).text.isidentifier():
                k += 2
            elif (call or self._tokens[k].type == "[") and k in self._brackets.closer_of:
                k, call = self._brackets.closer_of[k] + 1, None
            else:
                return k

    def _entry(self, i: int) -> Slip | None:
        """`note(text = …)`, `{a = 1}` and `var a = 1`."""
        if self._tokens[i].type != "=" or self._machine.accepted() != {":"}:
            return None
        if self._machine.accepts(":", "INT"):
            what = "arguments" if self._arguments() else "entries"
            hint = f"{what} are written `name: value`"
            return self._wrong(i, hint, feed=(":",), resume=i + 1)
        name = plain(self._tokens[i - 1].text)
        hint = f"a type stands before the value: `{name}: int = …`"
        return self._wrong(i, hint, feed=(":", "NAME"), resume=i)

    def _argument(self, i: int) -> Slip | None:
        """`note(var.a)`, `note("text")` and `note(a)`: a value without the argument's name."""
        opener = self._arguments()
        if opener is None:
            return None
        token, before = self._tokens[i], self._tokens[i - 1]
        hint = "arguments are written `name: value`"
        message = "" if opener is self._nameless else "an argument has a name"  # once for a call
        if before.type in ("(", ",") and self._machine.accepts("NAME", ":", token.type):
            self._nameless = opener
            return Slip(message, span_of(token), hint, feed=("NAME", ":"), resume=i)
        if self._tokens[i - 2].type not in ("(", ",") or self._machine.accepted() != {":"}:
            return None
        if before.type in ROOT_WORDS or before.type in ("true", "false", "null"):
            self._nameless = opener
            return Slip(message, span_of(before), hint, 1, ("NAME", ":"), i - 1)
        if token.type in (",", ")"):
            self._nameless = opener
            return Slip(message, span_of(before), hint, 1, ("NAME", ":", "INT"), i)
        return None

    def _arguments(self) -> Token | None:
        """The `(` of an action's arguments, if it is the innermost open bracket."""
        values = self._machine.values
        for k in range(len(values) - 1, 0, -1):
            value = values[k]
            if isinstance(value, Token) and value.type in ("(", "[", "{"):
                name = values[k - 1]
                called = isinstance(name, Token) and name.type == "ACTION_NAME"
                return value if called else None
        return None

    # --- types

    def _list_type(self, i: int) -> Slip | None:
        """`int[]` and `list[int]`."""
        if self._tokens[i].type != "[" or not self._machine.accepts("?"):
            return None
        closer = self._brackets.closer_of.get(i)
        if closer is None:
            return None
        before = self._tokens[i - 1]
        inner = "".join(token.text for token in self._tokens[i + 1 : closer])
        inner = inner if len(inner) <= _LONGEST else "…"
        written, item = f"{before.text}[{inner}]", inner or before.text
        span = Span(before.start, self._tokens[closer].end)
        hint = f"a list is written `list<{plain(item)}>`"
        return Slip(f"`{plain(written)}` is not a type", span, hint, resume=closer + 1)

    def _nullable(self, i: int) -> Slip | None:
        """`string | null`."""
        following = self._next(i)
        if self._tokens[i].type != "|" or not self._machine.accepts("?"):
            return None
        if following.type != "null" and following.text not in FOREIGN_LITERALS:
            return None
        hint = f"a type that takes null is written `{plain(self._tokens[i - 1].text)}?`"
        return self._wrong(i, hint, feed=("?",), resume=i + 2)

    def _optional(self, i: int) -> Slip | None:
        """`note?: string`, which only a field of a type can be."""
        if self._tokens[i].type != "?" or not self._machine.accepts(":"):
            return None
        if self._next(i).type != ":" or self._machine.accepts(":", "INT"):
            return None
        name, of = self._tokens[i - 1], self._tokens[min(i + 2, len(self._tokens) - 1)]
        type_ = of.text if of.type == "NAME" else "type"
        hint = f"what may be left out has a default: `{plain(f'{name.text} : {type_}')}? = null`"
        return self._wrong(i, hint, resume=i + 1)

    # --- what stands there

    def _wrong(
        self, i: int, hint: str, feed: tuple[str, ...] = (), resume: int | None = None
    ) -> Slip:
        """A slip whose message is the plain one, for the refused token itself."""
        expected = phrase_expected(self._machine.accepted())
        message = f"expected {expected}, found {phrase_found(self._tokens[i])}"
        return Slip(message, span_of(self._tokens[i]), hint, feed=feed, resume=resume)

    def _next(self, i: int) -> Token:
        return self._tokens[min(i + 1, len(self._tokens) - 1)]

    def _drops_to(self, drop: int, *types: str) -> bool:
        enough = drop <= len(self._machine.values)
        return enough and self._machine.accepts(*types, drop=drop)

    def _call_at(self, k: int) -> str | None:
        """The dotted name of a call at token `k`, such as `shop.take-stock` before a `(`; a plain
        name counts at the beginning of a line only, for elsewhere it is a function."""
        parts: list[str] = []
        end = self._tokens[k].start if k < len(self._tokens) else -1
        while k < len(self._tokens) and self._tokens[k].start == end and len(parts) < _LONGEST:
            token = self._tokens[k]
            if token.type == "(":
                name = "".join(parts)
                dotted = "." in name or (len(parts) == 1 and self._starts_line(k - 1))
                return name if dotted and parts[0].isidentifier() else None
            if token.type not in (".", "-") and not token.text.isidentifier():
                return None
            parts.append(token.text)
            end, k = token.end, k + 1
        return None

    def _starts_line(self, k: int) -> bool:
        return self._tokens[k].first or (k > 0 and self._tokens[k - 1].type in ("{", "}"))
