"""Words of this language where they do not belong: `retry` on a sequence, `on_error` on an action,
a duration without its unit. Each is one finding that says what to write instead."""

from __future__ import annotations

from dsl import codes
from dsl.expected import (
    ACTION_ATTRIBUTES,
    HEAD_ATTRIBUTES,
    ROOT_WORDS,
    STATEMENT_WORDS,
    phrase_found,
)
from dsl.literals import is_duration, meant_duration
from dsl.machine import Machine
from dsl.plain import plain
from dsl.slip import Slip, span_of
from dsl.tokens import Brackets, Token

_HANDLERS = ("on_error", "finally")
# What may follow an attribute's word, all of it written out.
_VALUES = frozenset(
    ("INT", "DECIMAL", "DURATION", "STRING", "-", "%", "true", "false", "backoff", "factor", "max")
) | frozenset(("jitter", "on", ","))
_TAKERS = {
    **dict.fromkeys(("limit", "join", "keep_going"), "parallel"),
    **dict.fromkeys(("parallel", "batch", "tolerate", "reuse"), "foreach"),
    **dict.fromkeys(("max", "keep"), "while"),
}
_ARTICLES = {"action": "an", "if": "an"}
# Attributes by the names that they have elsewhere.
_OTHER_NAMES = {
    **dict.fromkeys(("retries", "attempts", "max_attempts", "max_retries"), "retry"),
    **dict.fromkeys(("timeout_seconds", "deadline", "time_out"), "timeout"),
    **dict.fromkeys(("start_delay", "after"), "delay"),
}


class Misplaced:
    """Finds them in one text."""

    def __init__(self, machine: Machine, tokens: list[Token], brackets: Brackets) -> None:
        self._machine = machine
        self._tokens = tokens
        self._brackets = brackets

    def find(self, i: int) -> Slip | None:
        return (
            self._handler(i)
            or self._attribute(i)
            or self._attribute_as_key(i)
            or self._else_key(i)
            or self._backoff(i)
            or self._other_name(i)
            or self._retry(i)
            or self._comma(i)
            or self._duration(i)
        )

    # --- on_error, finally

    def _handler(self, i: int) -> Slip | None:
        word = self._tokens[i].type
        if word not in _HANDLERS:
            return None
        message = f"`{word}` follows only the `}}` of a sequence"
        hint = f"write `sequence {{ … }} {word} {{ … }}`"
        if word == "on_error" and self._word_of_body_before(i) == "finally":
            message, hint = "`on_error` stands before `finally`", "swap the two"
        feed: tuple[str, ...] = ()
        resume = None
        if self._tokens[i + 1].type == "{":
            if self._machine.accepts("sequence", "{"):
                feed, resume = ("sequence",), i + 1
            elif i + 1 in self._brackets.closer_of:
                resume = self._brackets.closer_of[i + 1] + 1
        return self._slip(i, message, hint, feed, resume)

    def _word_of_body_before(self, i: int) -> str | None:
        """The word before the body that ends right before token `i`."""
        opener = next((o for o, c in self._brackets.closer_of.items() if c == i - 1), 0)
        return self._tokens[opener - 1].type if opener else None

    # --- attributes

    def _attribute(self, i: int) -> Slip | None:
        word = self._tokens[i].type
        if word not in ACTION_ATTRIBUTES | HEAD_ATTRIBUTES:
            return None
        if word == "parallel" and self._tokens[i].first:
            return None  # the node
        if self._machine.accepts("INT") and not self._machine.accepts("+"):
            return None  # a value is missing before it
        if self._machine.accepts(")") or self._machine.accepts("]"):
            return None  # a bracket is
        owner = self._owner()
        if owner == "action" and word in ACTION_ATTRIBUTES and self._machine.accepts("{"):
            message = f"the `{word}` of an action stands in its braces"
            return self._slip(i, message, f"write `{{ {word} … }}`", (), self._after_line(i))
        return self._none_of(i, owner, word, self._after_values(i))

    def _attribute_as_key(self, i: int) -> Slip | None:
        """`parallel retry 3 { … }`, where `retry` was taken for the key."""
        before = self._tokens[i - 1] if i else self._tokens[i]
        if before.type not in ACTION_ATTRIBUTES or self._tokens[i].type not in ("INT", "DURATION"):
            return None
        if self._tokens[i - 2].type not in ("sequence", "parallel"):
            return None
        return self._none_of(i - 1, self._tokens[i - 2].type, before.type, self._after_values(i))

    def _none_of(self, i: int, owner: str, word: str, resume: int) -> Slip:
        message = f"{_ARTICLES.get(owner, 'a')} `{owner}` has no `{word}`"
        if word in _TAKERS:
            hint = f"`{_TAKERS[word]}` takes it"
        elif word == "timeout":
            hint = "put it into a `sequence { timeout … }` around this"
        elif word == "delay":
            hint = "only an action has one; put a `sleep` before this"
        elif owner == "wait_event" and word == "retry":
            hint = "what to do when the time is up stands in `timeout D { … }`"
        else:
            hint = "only an action has it: put it into the braces of the action"
        return self._slip(i, message, hint, (), resume)

    def _owner(self) -> str:
        """The word that begins the innermost node that is not read to its end."""
        for value in reversed(self._machine.values):
            if isinstance(value, Token) and value.type in STATEMENT_WORDS:
                return value.type
        return "workflow"

    def _after_values(self, i: int) -> int:
        k = i + 1
        while self._tokens[k].type in _VALUES or self._is_code(k):
            k += 1
        return k

    def _after_line(self, i: int) -> int:
        """Behind all attributes that follow on the line."""
        k = self._after_values(i)
        while self._tokens[k].type in ACTION_ATTRIBUTES and not self._tokens[k].first:
            k = self._after_values(k)
        return k

    def _is_code(self, k: int) -> bool:
        """The name of a result code in `on busy, lost`."""
        named = self._tokens[k].type in ("NAME", "lease", "timeout")
        return named and self._tokens[k - 1].type in ("on", ",")

    def _other_name(self, i: int) -> Slip | None:
        token = self._tokens[i]
        word = _OTHER_NAMES.get(token.text) if token.type == "NAME" else None
        if word is None or not self._machine.accepts(word) or self._machine.accepts("action"):
            return None
        message = f'an action has no attribute "{plain(token.text)}"'
        return Slip(message, span_of(token), f"did you mean `{word}`?", 0, (word,), i + 1)

    def _retry(self, i: int) -> Slip | None:
        """`retry { attempts: 3 }` and `retry max 3`."""
        token = self._tokens[i]
        if self._tokens[i - 1].type != "retry" or not self._machine.accepts("INT"):
            return None
        message, hint = "`retry` takes a number of attempts", "such as `retry 3 backoff 2s max 1m`"
        if token.type == "{" and i in self._brackets.closer_of:
            return Slip(message, span_of(token), hint, 0, ("INT",), self._brackets.closer_of[i] + 1)
        return Slip(message, span_of(token), hint, 0, ("INT",), self._after_values(i))

    def _backoff(self, i: int) -> Slip | None:
        """`retry 3 5s` and `retry 3 wait 5s`."""
        token = self._tokens[i]
        if token.first or not self._machine.accepts("backoff"):
            return None
        at = i
        if token.type == "NAME" and _OTHER_NAMES.get(token.text, "delay") == "delay":
            at = min(i + 1, len(self._tokens) - 1)
        if self._tokens[at].type != "DURATION":
            return None
        hint = f"the pause between attempts is written `backoff {plain(self._tokens[at].text)}`"
        message = f"unexpected {phrase_found(token)}"
        return Slip(message, span_of(token), hint, 0, ("backoff", "DURATION"), at + 1)

    def _else_key(self, i: int) -> Slip | None:
        """`else if key: …`."""
        if self._tokens[i].type != ":" or [t.type for t in self._tokens[i - 3 : i - 1]] != [
            "else",
            "if",
        ]:
            return None
        key = self._tokens[i - 1]
        hint = f"write `else {{ if {plain(key.text)}: … {{ … }} }}`"
        return Slip("an `else if` has no key", span_of(key), hint, 1, (), i + 1)

    def _comma(self, i: int) -> Slip | None:
        """A comma after a node, or between the parts of an attribute."""
        following = self._tokens[min(i + 1, len(self._tokens) - 1)]
        if self._tokens[i].type != "," or not self._machine.accepts(following.type):
            return None
        if self._tokens[i - 1].type == "," or following.type in (")", "]", "NAME"):
            return None
        span = span_of(self._tokens[i])
        return Slip("unexpected `,`", span, "no comma stands here: leave it out", resume=i + 1)

    # --- durations

    def _duration(self, i: int) -> Slip | None:
        token = self._tokens[i]
        if not self._machine.accepts("DURATION"):
            return None
        message, resume, hint = "a duration is written out, with its unit", i + 1, None
        if token.type in ("INT", "DECIMAL"):
            unit = self._tokens[i + 1]
            meant = meant_duration(token.text + unit.text) if unit.type == "NAME" else None
            if meant is not None:
                resume = i + 2
            hint = f"write `{meant or token.text + 's'}`"
        elif token.type == "STRING":
            text = str(token.value)
            meant = text if is_duration(text) else meant_duration(text.replace(" ", ""))
            hint = f"write `{meant}`, without quotes" if meant else "such as `30s`"
        elif token.type in ROOT_WORDS and self._tokens[i + 1].type == ".":
            message, hint = "a duration is written out: it cannot be read from anywhere", None
            while self._tokens[resume].type == ".":
                resume += 2
        else:
            return None
        return Slip(message, span_of(token), hint, 0, ("DURATION",), resume)

    def _slip(
        self, i: int, message: str, hint: str, feed: tuple[str, ...], resume: int | None
    ) -> Slip:
        span = span_of(self._tokens[i])
        return Slip(message, span, hint, 0, feed, resume, codes.MISPLACED)
