"""The LALR(1) table of `grammar.lark`, kept between runs.

Flow: grammar text → Lark in strict mode → `Table`, plain numbers and words → `table.json` beside
the grammar (`python -m dsl.table` writes it). A run reads that file and never imports Lark, whose
import and analysis cost the better part of a second. When the grammar was edited since, the table
is built anew and kept in the user's cache folder until the file is written again. Both hold data
only (nothing in them is executed) and carry the grammar they were made from and a check sum; the
cache is written under another name and then renamed. A file that is damaged, of another grammar, or
cannot be written is simply not used.
"""

from __future__ import annotations

import json
import os
import sys
import zlib
from pathlib import Path
from typing import Any

from dsl.quick_class import dataclass

_FORMAT = 1
_GRAMMAR = Path(__file__).with_name("grammar.lark")
_SHIPPED = Path(__file__).with_name("table.json")


@dataclass(frozen=True, slots=True)
class Rule:
    """A production: `method` names the Builder method, `size` counts the children."""

    origin: str
    goto: str
    method: str
    size: int


@dataclass(frozen=True, slots=True)
class Table:
    """`actions[state][symbol]` is n > 0 to shift into state n - 1, n < 0 to reduce rule -n - 1.

    Symbols are the words and signs as written (`action`, `{`), the declared terminals (`NAME`),
    `$END`, and the rules, as `@rule`, whose entries are the states after a reduction.
    """

    literals: frozenset[str]
    terminals: frozenset[str]
    rules: tuple[Rule, ...]
    actions: tuple[dict[str, int], ...]
    start: int
    end: int


def load_table() -> Table:
    """Returns the table: as shipped, else from the cache, else freshly built."""
    grammar = _GRAMMAR.read_text(encoding="utf-8")
    shipped = _read(_SHIPPED, grammar)
    if shipped is not None:
        return shipped
    path = _cache_path(grammar)
    table = _read(path, grammar) if path else None
    if table is None:
        document = build_document(grammar)
        table = _from_document(document)
        if path:
            _write(path, document)
    return table


def build_document(grammar: str) -> dict[str, Any]:
    """Builds the table with Lark, strictly: a conflict in the grammar is an error."""
    from lark import Lark
    from lark.lexer import Lexer
    from lark.parsers.lalr_analysis import Shift

    class _OwnLexer(Lexer):  # type: ignore[misc,unused-ignore]
        """Stands in for dsl.lexer, so that Lark builds no lexer of its own."""

        def __init__(self, _conf: Any) -> None: ...

        def lex(self, *_args: Any) -> Any:
            return iter(())

    lark = Lark(grammar, parser="lalr", lexer=_OwnLexer, strict=True, maybe_placeholders=False)
    names = {rule.origin.name: f"@{rule.origin.name}" for rule in lark.rules}
    names.update({t.name: t.pattern.value for t in lark.terminals if t.pattern})
    table = lark.parser.parser._parse_table
    ordered = sorted(lark.rules, key=lambda r: (r.origin.name, [s.name for s in r.expansion]))
    rules = {rule: n for n, rule in enumerate(ordered)}
    numbers = _state_numbers(table.states, table.start_states["start"], Shift)
    # The analysis adds a rule for the start symbol, which is never reduced here.
    actions = [
        {
            names.get(symbol, symbol): (
                numbers[argument] + 1 if action is Shift else -rules[argument] - 1
            )
            for symbol, (action, argument) in sorted(table.states[state].items())
        }
        for state in numbers
    ]
    return {
        "grammar": grammar,
        "literals": sorted(t.pattern.value for t in lark.terminals if t.pattern),
        "terminals": sorted({s for row in actions for s in row if not s.startswith("@")}),
        "rules": [[r.origin.name, r.alias or r.origin.name, len(r.expansion)] for r in ordered],
        "actions": actions,
        "start": numbers[table.start_states["start"]],
        "end": numbers[table.end_states["start"]],
    }


def _state_numbers(states: dict[Any, Any], start: Any, shift: Any) -> dict[Any, int]:
    """Numbers the states as they are reached: Lark's own numbers change from run to run."""
    reached = {start: 0}
    for state in (queue := [start]):
        for _, (action, argument) in sorted(states[state].items(), key=lambda item: item[0]):
            if action is shift and argument not in reached:
                reached[argument] = len(reached)
                queue.append(argument)
    return reached


def _from_document(document: dict[str, Any]) -> Table:
    return Table(
        literals=frozenset(document["literals"]),
        terminals=frozenset(document["terminals"]),
        rules=tuple(Rule(str(o), f"@{o}", str(m), int(n)) for o, m, n in document["rules"]),
        actions=tuple(document["actions"]),
        start=int(document["start"]),
        end=int(document["end"]),
    )


def _cache_path(grammar: str) -> Path | None:
    """Returns where this grammar's table is kept, or None when there is no such place."""
    version = f"{_FORMAT}-{sys.version_info[0]}{sys.version_info[1]}"
    folder = os.environ.get("WFSQL_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    if not folder:
        try:
            folder = str(Path.home() / ".cache")
        except RuntimeError:
            return None
    name = f"grammar-{version}-{zlib.crc32(grammar.encode()):08x}.json"
    return Path(folder) / "wfsql" / name


def _read(path: Path, grammar: str) -> Table | None:
    try:
        check, body, *_ = path.read_text(encoding="utf-8").split("\n")
        document = json.loads(body) if check == _check(body) else {}
        return _from_document(document) if document.get("grammar") == grammar else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def file_text(document: dict[str, Any]) -> str:
    """Returns what a file of this table holds: a check sum and JSON, one line each."""
    body = json.dumps(document, separators=(",", ":"))
    return f"{_check(body)}\n{body}\n"


def _write(path: Path, document: dict[str, Any]) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary.write_text(file_text(document), encoding="utf-8")
        os.replace(temporary, path)
    except OSError:
        return


def _check(body: str) -> str:
    return f"{zlib.crc32(body.encode()):08x}"


if __name__ == "__main__":
    _SHIPPED.write_text(file_text(build_document(_GRAMMAR.read_text("utf-8"))), "utf-8")
