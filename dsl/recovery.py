"""What to do at a token that cannot stand where it is: say so once, and go on.

In this order: a fault that explains itself (the end of the file inside braces, a `workflow` inside
another, a reserved word, a placeholder), a slip that is known (`dsl.slips`), a missing sign that
can be put in, a misspelt keyword, and else the broken statement is left out: the machine goes back
to where the statement began and takes up at the next statement of the same body. When the broken
statement has a body of its own, its head is replaced by a sound one and the body is read, so that
faults inside are found too. What a repair left open is never complained about.
The AST of a broken text is thrown away; only its diagnostics count.
"""

from __future__ import annotations

from typing import Protocol

from dsl import codes
from dsl.diagnostics import Label
from dsl.expected import HIDDEN, OPERATORS, ROOT_WORDS, phrase_expected, phrase_found, type_phrase
from dsl.machine import Machine
from dsl.meant import Meant
from dsl.slip import Slip, span_of
from dsl.slips import Slips
from dsl.source import Span
from dsl.tokens import Brackets, Token

_RESERVED = frozenset(("call", "succeed", "compensate"))
_INSERTABLE = ("=", ":", ",", ")", "]", "(", ".", "on", "in")
_DECLARATIONS = frozenset(("@input_decl", "@output_decl"))
_MOST_TRIES = 4
_ENDS = frozenset(("{", "}", ")", "]", ","))
_CLOSING = frozenset((")", "]", "}"))
_BRACKETS = frozenset(("(", "[", "{", "${", "TEMPLATE_START"))

# A sound head for the body of a broken statement, by the word the statement begins with.
_HEADS = {
    "workflow": ("workflow", "NAME"),
    "input": ("input",),
    "output": ("output",),
    "on": ("on", "event", "STRING", "NAME"),
    "action": ("action", "NAME", "=", "ACTION_NAME", "(", ")"),
    "sequence": ("sequence",),
    "parallel": ("parallel",),
    "if": ("if", "true"),
    "switch": ("switch", "NAME"),
    "case": ("case", "INT"),
    "default": ("default",),
    "repeat": ("repeat", "INT"),
    "while": ("while", "true"),
    "foreach": ("foreach", "NAME", "in", "[", "]"),
    "wait_event": ("wait_event", "NAME", "on", "STRING"),
}
_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">=", "in"))


class Reporter(Protocol):
    """Where recovery puts what it finds."""

    @property
    def has_findings(self) -> bool: ...

    def report(
        self,
        code: codes.Code,
        message: str,
        span: Span,
        hint: str | None = None,
        labels: tuple[Label, ...] = (),
    ) -> None: ...


class Recovery:
    """Deals with the syntax errors of one text."""

    def __init__(
        self, machine: Machine, tokens: list[Token], brackets: Brackets, reporter: Reporter
    ) -> None:
        self._machine = machine
        self._tokens = tokens
        self._brackets = brackets
        self._reporter = reporter
        self._slips = Slips(machine, tokens, brackets)
        self._meant = Meant(tokens)
        self._reported_at = -1
        self._last = -1
        self._tries = 0

    def recover(self, i: int) -> int | None:
        """Deals with the refused token `i`; returns where to go on, or None to stop."""
        token = self._tokens[i]
        if token.type == "$END":
            self._end_of_file(i)
            return None
        if self._is_stuck(i):
            return i + 1
        if self._closes_synthetic_body(i):
            return i
        if token.type == "workflow" and token.first and self._innermost_body() is not None:
            return self._missing_brace(i)
        if token.inside:
            return self._placeholder(i)
        if token.type == "NAME" and token.text in _RESERVED and self._statement_expected():
            message = f"`{token.text}` is reserved for a later version of the language"
            self._report(i, codes.RESERVED_WORD, message, span_of(token))
            return self._leave_out(i)
        if slip := self._slips.find(i):
            return self._mend_slip(i, slip)
        return self._insert_sign(i) or self._mend_keyword(i) or self._unexpected(i)

    def _is_stuck(self, i: int) -> bool:
        """Whether recovery came back to one token too often; then the token is skipped."""
        self._tries = self._tries + 1 if i == self._last else 0
        self._last = i
        return self._tries > _MOST_TRIES

    # --- messages

    def _report(
        self,
        i: int,
        code: codes.Code,
        message: str,
        span: Span,
        hint: str | None = None,
        labels: tuple[Label, ...] = (),
    ) -> None:
        """Reports unless the place was reported already, by the lexer or just before."""
        near = self._tokens[max(0, i - 1) : i + 1]
        at_line = self._tokens[i].first and self._tokens[i].type != "$END"
        if at_line and not self._machine.accepts("INT"):
            near = near[-1:]  # the value before it was complained about, and is one
        if i > self._reported_at and not any(token.broken for token in near):
            self._reporter.report(code, message, span, hint, labels)
        # What is wrong before the first token of a line says nothing of that token.
        is_before = self._tokens[i].first and span.end <= self._tokens[i].start
        self._reported_at = i - 1 if is_before else i

    def _unexpected(self, i: int) -> int | None:
        token = self._tokens[i]
        accepted = self._machine.accepted()
        expected = phrase_expected(accepted)
        if i > 0 and _is_at_end(token) and _lacks_something(accepted):
            end = self._tokens[i - 1].end
            after = phrase_found(self._tokens[i - 1])
            message = f"expected {expected} after {after}, found {phrase_found(token)}"
            self._report(i, codes.UNEXPECTED, message, Span(end, end), self._hint(i))
            return self._leave_out(i, is_sound=token.first)
        else:
            message = f"expected {expected}, found {phrase_found(token)}"
            self._report(i, codes.UNEXPECTED, message, span_of(token), self._hint(i))
        return self._leave_out(i)

    def _hint(self, i: int) -> str | None:
        token = self._tokens[i]
        accepted = self._machine.accepted()
        if token.type == "else" and self._statement_expected():
            return "`else` follows the `}` of an `if`"
        if token.type == "}" and "workflow" in accepted and "}" not in accepted:
            return "this `}` closes nothing: leave it out"
        if token.type in ROOT_WORDS and "NAME" in accepted and "INT" not in accepted:
            return f"`{token.type}` begins a reference and cannot be the key of a node"
        if token.type == "?" and "??" in accepted:
            return "there is no `a ? b : c`: `set` a variable in an `if` and its `else`"
        if token.type == "NAME" and accepted >= ROOT_WORDS and "NAME" not in accepted:
            return self._reference_hint(i)
        if token.type == "NAME" and self._tokens[i - 1].type in ("input", "output"):
            return f"write `{self._tokens[i - 1].type} {{ … }}`"
        if accepted == {"on"}:
            return 'write `wait_event key on "type"`'
        if token.type == "not" and "in" in accepted:
            return "write `not a in b`"
        if token.type in _COMPARISONS and "and" in accepted:
            return "comparisons do not chain: join them by `and`"
        return None

    # --- faults that explain themselves

    def _end_of_file(self, i: int) -> None:
        last = self._tokens[i - 1]
        place = Span(last.end, last.end)
        opener = self._brackets.suspect
        unclosed = self._unclosed()
        accepted = self._machine.accepted()
        closers = accepted & _CLOSING
        if unclosed and (closers or i - 1 == unclosed[-1]):
            opener = unclosed[-1] if opener is None else opener
            token = self._tokens[opener]
            closer = {"(": ")", "[": "]"}.get(token.type, "}")
            labels = (Label(span=span_of(token), message="opened here"),)
            message = f"the file ends, but `{token.type}` has no closing `{closer}`"
            self._report(i, codes.MISSING_BRACE, message, place, f"add `{closer}`", labels)
            return
        if not unclosed and self._anything_open() and self._reporter.has_findings:
            return  # left open by a repair, not by the author
        message = f"expected {phrase_expected(accepted)}, found the end of the file"
        self._report(i, codes.UNEXPECTED, message, place)

    def _missing_brace(self, i: int) -> int:
        if not self._unclosed() and self._reporter.has_findings:
            self._machine.pop_to(0)  # left open by a repair, not by the author
            return i
        opener = self._brackets.suspect
        if opener is None or opener >= i:
            opener = self._innermost_body() or 0
        last = self._tokens[i - 1]
        labels = (Label(span=span_of(self._tokens[opener]), message="opened here"),)
        message = "`workflow` begins inside a body that has no closing `}`"
        place = Span(last.end, last.end)
        self._report(i, codes.MISSING_BRACE, message, place, "add `}`", labels)
        self._machine.pop_to(0)
        return i

    def _placeholder(self, i: int) -> int | None:
        """A fault inside `${…}`: the string is taken without its placeholders from here on."""
        token = self._tokens[i]
        expected = phrase_expected(self._machine.accepted())
        message = f"expected {expected}, found {phrase_found(token)}"
        hint = self._placeholder_hint(i)
        self._report(i, codes.BAD_STRING, message, span_of(token), hint)
        start = self._open_template()
        end = self._brackets.closer_of.get(start) if start is not None else None
        if start is None or end is None:
            return self._leave_out(i)
        height = next(h for h, v in enumerate(self._machine.values) if v is self._tokens[start])
        self._machine.pop_to(height + 1)
        self._machine.feed(_synthetic("PIECE", token))
        return end

    def _placeholder_hint(self, i: int) -> str:
        token, following = self._tokens[i], self._tokens[min(i + 1, len(self._tokens) - 1)]
        if token.type in OPERATORS or following.type == "(":
            return "a placeholder holds one reference: `set` the value to a variable first"
        if token.type == "NAME":
            return self._reference_hint(i)
        return "a placeholder holds one reference: ${var.name} or ${ctx.…}"

    def _reference_hint(self, i: int) -> str:
        from difflib import get_close_matches

        name, roots = self._tokens[i].text, sorted(ROOT_WORDS)
        root = get_close_matches(name, roots, n=1, cutoff=0.75)
        if root and not self._meant.is_key(i):
            return f"did you mean `{root[0]}`?"
        return self._meant.reading_hint(i)

    def _open_template(self) -> int | None:
        values = self._machine.values
        for value in reversed(values):
            if isinstance(value, Token) and value.type == "TEMPLATE_START":
                return self._index_of(value)
        return None

    def _statement_expected(self) -> bool:
        return self._machine.accepts("sequence", "{")

    # --- small repairs

    def _mend_slip(self, i: int, slip: Slip) -> int | None:
        if slip.message:
            self._report(i, slip.code, slip.message, slip.span, slip.hint)
        if slip.resume is None:
            return self._leave_out(i)
        self._machine.pop_to(len(self._machine.values) - slip.drop)
        for type_ in slip.feed:
            self._machine.feed(_synthetic(type_, self._tokens[i]))
        return slip.resume

    def _closes_synthetic_body(self, i: int) -> bool:
        """Closes a body whose `{` was put in, where that lets the token stand."""
        if not self._slips.in_mended_body():
            return False
        token = self._tokens[i]
        if not self._machine.accepts("}", token.type):
            return False
        return self._machine.feed(_synthetic("}", token))

    def _insert_sign(self, i: int) -> int | None:
        token, following = self._tokens[i], self._tokens[min(i + 1, len(self._tokens) - 1)]
        before = self._tokens[i - 1] if i else None
        if before is None or token.type in (")", "]"):
            return None
        for sign in _INSERTABLE:
            ahead = () if following.first else (following.type,)
            if not self._machine.accepts(sign, token.type, *ahead):
                continue
            if sign == "in" and (self._machine.accepts("+") or self._machine.accepts("INT")):
                continue  # a comparison, or a value: what is missing there is unknown
            if sign == "on" and self._machine.accepted() != {"on"}:
                continue  # a name
            if sign in "(." and before.type not in ("NAME", "ACTION_NAME", "var", "ctx"):
                continue
            message = f"expected {type_phrase(sign)} after {phrase_found(before)}"
            self._report(i, codes.UNEXPECTED, message, Span(before.end, before.end))
            self._machine.feed(_synthetic(sign, token))
            return i
        return None

    def _mend_keyword(self, i: int) -> int | None:
        token = self._tokens[i]
        if token.type != "NAME" or i + 1 >= len(self._tokens):
            return None
        from difflib import get_close_matches

        words = [t for t in self._machine.accepted() if t.isidentifier() and t.islower()]
        for word in get_close_matches(token.text.lower(), words, n=3, cutoff=0.7):
            if self._machine.accepts(word, self._tokens[i + 1].type):
                expected = phrase_expected(self._machine.accepted())
                message = f"expected {expected}, found {phrase_found(token)}"
                hint = f"did you mean `{word}`?"
                self._report(i, codes.UNEXPECTED, message, span_of(token), hint)
                self._machine.feed(Token(word, word, token.start, token.end))
                return i + 1
        return None

    # --- leaving a statement out

    def _leave_out(self, i: int, *, is_sound: bool = False) -> int | None:
        """Leaves out the statement that ends at token `i`; `is_sound`: the token may begin one."""
        self._settle(i)
        height: int | None = self._machine.context_height(len(self._machine.values))
        while height is not None:
            dropped = self._machine.values[height:]
            begins = dropped[0].type if dropped and isinstance(dropped[0], Token) else None
            self._machine.pop_to(height)
            start = self._end_of_dropped(dropped, i)
            found = self._find_next(i - is_sound, begins, start)
            if found is not None:
                return found
            height = self._machine.context_height(height - 1)
        return None

    def _settle(self, i: int) -> None:
        """Ends the statement before token `i` if its body ends there: it is not the broken one."""
        if i == 0 or self._tokens[i - 1].type != "}":
            return
        for word in ("sequence", "case", "workflow"):
            if self._machine.accepts(word):
                self._machine.feed(_synthetic(word, self._tokens[i]))
                self._machine.pop_to(len(self._machine.values) - 1)
                return

    def _end_of_dropped(self, dropped: list[object], i: int) -> int:
        """Where to look from: behind the brackets that the broken statement opened."""
        for value in dropped:
            if isinstance(value, Token) and value.type in _BRACKETS and value.text:
                index = self._index_of(value)
                closer = self._brackets.closer_of.get(index)
                if closer is not None and closer >= i and index not in self._brackets.bodies:
                    return closer + 1
        return i

    def _find_next(self, i: int, begins: str | None, start: int) -> int | None:
        """Finds the token in this body at which to go on, feeding a head where one is needed."""
        closer = self._closer_here()
        k = start
        while k < len(self._tokens):
            token = self._tokens[k]
            if k == closer or token.type == "$END":
                return k if self._machine.accepts(token.type) else None
            if self._begins_item(k, i):
                return k
            if k in self._brackets.bodies and (head := self._head_for(k, begins)):
                for type_ in head:
                    self._machine.feed(_synthetic(type_, token))
                return k
            if token.type in _BRACKETS:
                k = self._brackets.closer_of.get(k, k)
            k += 1
        return None

    def _begins_item(self, k: int, refused: int) -> bool:
        token = self._tokens[k]
        before = self._tokens[k - 1] if k else None
        if not (token.first or (before and before.type in ("}", "{"))):
            return False
        following = self._tokens[min(k + 1, len(self._tokens) - 1)].type
        if not self._machine.contexts().isdisjoint(_DECLARATIONS):
            return self._machine.accepts(token.type, following)
        if token.type == "NAME" and token.first:
            # Perhaps a misspelt keyword or a slip: worth a finding of its own.
            known = token.text in _RESERVED or following == "NAME"
            return k > refused and (known or self._slips.begins(k))
        if not token.type.islower() or following in (":", "=", ","):
            return False
        if token.type == "else" and k == refused + 1:
            return True  # right behind what was left out, so it is no part of it
        return self._machine.accepts(token.type)

    def _head_for(self, k: int, begins: str | None) -> tuple[str, ...] | None:
        first_inside = self._tokens[k + 1].type
        guesses = [begins] if begins in _HEADS else []
        guesses.append("switch" if first_inside in ("case", "default") else "sequence")
        guesses.append("workflow")
        for guess in guesses:
            head = _HEADS[guess] if guess else ()
            if head and self._machine.accepts(*head, "{"):
                return head
        return None

    # --- what is open

    def _index_of(self, token: Token) -> int:
        low, high = 0, len(self._tokens)
        while low < high:
            middle = (low + high) // 2
            if self._tokens[middle].start < token.start:
                low = middle + 1
            else:
                high = middle
        return low

    def _open(self) -> list[int]:
        """The brackets on the stack that were really in the text, outermost first."""
        values = self._machine.values
        return [
            self._index_of(value)
            for value in values
            if isinstance(value, Token) and value.text and value.type in ("(", "[", "{")
        ]

    def _anything_open(self) -> bool:
        values = self._machine.values
        return any(isinstance(v, Token) and v.type in ("(", "[", "{") for v in values)

    def _unclosed(self) -> list[int]:
        """Those of them that nothing closes; others were left open by a repair."""
        return [i for i in self._open() if i not in self._brackets.closer_of]

    def _innermost_body(self) -> int | None:
        bodies = [i for i in self._open() if self._tokens[i].type == "{"]
        return bodies[-1] if bodies else None

    def _closer_here(self) -> int | None:
        innermost = self._innermost_body()
        return None if innermost is None else self._brackets.closer_of.get(innermost)


def _is_at_end(token: Token) -> bool:
    """Whether what stands before a token ends there: what is missing is missing before it."""
    return token.first or token.type in _ENDS


def _lacks_something(accepted: set[str]) -> bool:
    """Whether a value or a sign is missing before the refused token, rather than that is wrong."""
    if accepted >= {"INT", "STRING", "null"} or accepted >= {"INT", "-"}:
        return True
    signs = {t for t in accepted - OPERATORS if t not in HIDDEN}
    return len(signs) <= 3 and not any(t.islower() for t in signs)


def _synthetic(type_: str, near: Token) -> Token:
    """A token that is not in the text; its empty text tells."""
    value = {"INT": 0, "STRING": "", "PIECE": ""}.get(type_)
    return Token(type_, "", near.start, near.start, value)
