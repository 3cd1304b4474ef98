"""What an author meant by a bare name where a value stands: a variable, or what an action gave.

A text that is being parsed has no model yet, so this looks at the tokens alone.
"""

from __future__ import annotations

from dsl.plain import plain
from dsl.tokens import Token

_DECLARES = frozenset(("var", "set", "collect", "as", "foreach"))
_MOST_STEPS = 8  # of a path that is shown


class Meant:
    """Knows the keys of actions and the names that are declared in one text."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._known: tuple[frozenset[str], frozenset[str]] | None = None

    def reading_hint(self, at: int) -> str:
        """Returns how to read what the name at token `at` stands for."""
        name = self._tokens[at].text
        if not self.is_key(at):
            return f"a variable is read as `var.{plain(name)}`"
        hint = f"what the action gives is read as `ctx.task.{plain(name)}.{self._part(at + 1)}`"
        if self._tokens[at + 1].type != ".":
            hint += f", its result code as `ctx.task.{plain(name)}.resultCode`"
        return hint

    def is_key(self, at: int) -> bool:
        """Whether the name at token `at` is that of an action, and of no variable."""
        keys, variables = self._names()
        return self._tokens[at].text in keys - variables

    def _names(self) -> tuple[frozenset[str], frozenset[str]]:
        if self._known is None:
            keys, variables = set(), set()
            for before, token in zip(self._tokens, self._tokens[1:], strict=False):
                if before.type in ("action", "wait_event"):
                    keys.add(token.text)
                elif before.type in _DECLARES:
                    variables.add(token.text)
            self._known = frozenset(keys), frozenset(variables)
        return self._known

    def _part(self, at: int) -> str:
        """The steps behind the name: `count.words` means the output's field `words`."""
        steps: list[str] = []
        while self._tokens[at].type == "." and len(steps) < _MOST_STEPS:
            step = self._tokens[at + 1]
            if not step.text.isidentifier():
                break
            steps.append(plain(step.text))
            at += 2
        if steps[:1] not in (["output"], ["resultCode"]):
            steps.insert(0, "output")
        return ".".join(steps) if len(steps) > 1 or steps == ["resultCode"] else "output.…"
