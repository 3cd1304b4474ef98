"""Random workflows that are valid by construction, with scripted results for every action.

A program is drawn as text, top down. `_Scope` carries what a statement may use at its place: the
variables it may read and write, the tasks that may have run before it. Inside PARALLEL branches and
parallel iterations no outer variable may be written, which is what the compiler wants (S2.5), and
so it is in the body of a FOREACH with `reuse`, whose tasks nobody outside may read (R8).
Durations are few and alike, so that times often fall together. Lists of statements shrink to
shorter ones and choices to the first, so that a failing program becomes a short, readable `.wf`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from wfsql.testing.cases import IN_ORDER, REVERSE, Schedule

MAX_DEPTH = 3
CATALOG = """\
actions:
  - name: t.do
    capability: t
    result_codes: { 0: ok, 1: short, 2: long }
"""

_VARIABLES = ("v0", "v1", "v2", "t0")
# Those of a type have names of their own: what is written to them must be of any type, or fit.
_TYPED = "t"
# Mostly integers, so that most programs come far; the rest is there to make the engines fail alike.
_LITERALS = ("0", "1", "2", "3", "-1", "0", "1", "2", "1.0", "true", "null", '"a"', "[1, 2]")
_INTEGERS = ("0", "1", "2", "3")
_CODES = (*[0] * 9, 1, 2, -1, -2)
_DURATIONS = ("2s", "1s", "3s", "5s")
_TAKES_MS = (*[0] * 8, 1000, 2000, 3000, 6000)


@dataclass(frozen=True)
class RandomResult:
    """What an action answers once, and how long that takes on the virtual clock."""

    code: int
    output: Any
    takes_ms: int = 0


@dataclass(frozen=True)
class RandomProgram:
    """A workflow, its input, what its actions answer in turn by key, and an order of answers."""

    text: str
    context: dict[str, Any]
    results: dict[str, tuple[RandomResult, ...]]
    schedule: Schedule
    events: tuple[str, ...] = ()

    @property
    def reuses(self) -> bool:
        return " reuse" in self.text


@dataclass(frozen=True)
class _Scope:
    depth: int
    readable: tuple[str, ...]
    writable: tuple[str, ...]
    tasks: tuple[str, ...] = ()
    in_loop: bool = False
    is_root_scope: bool = True
    in_handler: bool = False
    in_reuse: bool = False

    @property
    def untyped(self) -> tuple[str, ...]:
        """Variables that are of any type for sure."""
        return tuple(name for name in self.readable if name[0] in "vl")


@dataclass
class _Writer:
    """What is drawn so far; numbers make every name unique."""

    draw: Any
    count: int = 0
    results: dict[str, tuple[RandomResult, ...]] = field(default_factory=dict)
    collects: list[str] = field(default_factory=list)
    has_waits: bool = False
    waits: list[str] = field(default_factory=list)

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def seldom(self, text: str, one_in: int = 4) -> str:
        """Draws a text or, mostly, none; none is what it shrinks to."""
        return text if self.draw(st.integers(1, one_in)) == one_in else ""

    def duration(self) -> str:
        return str(self.pick(*_DURATIONS))

    # -- expressions

    def operand(self, scope: _Scope) -> str:
        kinds = ["literal", "variable"]
        if scope.tasks:
            kinds += ["task", "code"]
        if scope.in_loop:
            kinds.append("index")
        if scope.in_handler:
            kinds += ["error", "error"]
        match self.pick(*kinds):
            case "literal":
                return str(self.pick(*_LITERALS))
            case "variable":
                return f"var.{self.pick(*scope.readable)}"
            case "task":
                return f"(ctx.task.{self.pick(*scope.tasks)}.output.v ?? 0)"
            case "code":
                return f"(ctx.task.{self.pick(*scope.tasks)}.resultCode ?? 9)"
            case "error":
                part = self.pick("message", "code", "engine_code", "node", "path")
                return str(self.pick(f"(ctx.error.{part} ?? 8)", f"ctx.error.{part}"))
            case _:
                return "ctx.index"

    def expression(self, scope: _Scope) -> str:
        operator = self.pick("", "", "", "+", "-", "*", "??", "+", "??", "==")
        left = self.operand(scope)
        if operator == "":
            return left
        # A literal may have a type that the compiler refuses here; a reference is of any type.
        if operator != "??":
            left = f"var.{self.pick(*scope.readable)}"
        return f"({left} {operator} var.{self.pick(*scope.readable)})"

    def condition(self, scope: _Scope) -> str:
        name = f"var.{self.pick(*scope.readable)}"
        other = self.pick(*_INTEGERS)
        form = self.pick("{} == {}", "{} != {}", "{} < {}", "not {} == {}", "{} >= {} or false")
        return str(form.format(name, other))

    # -- statements

    def block(
        self, scope: _Scope, most: int = 3, indent: str = "  ", least: int = 1
    ) -> tuple[str, _Scope]:
        """Draws statements; returns them and the scope after them."""
        text = ""
        for _ in range(self.draw(st.integers(least, most))):
            line, scope = self.statement(scope, indent)
            text += line
        return text, scope

    def statement(self, scope: _Scope, indent: str) -> tuple[str, _Scope]:
        simple = [self.action, self.action, self.action]
        if scope.writable:
            simple.append(self.assignment)
        simple.append(self.sleep)
        if self.has_waits and not scope.in_reuse:
            simple += [self.wait, self.wait]
        composite = [
            self.sequence,
            self.parallel,
            self.each,
            self.guarded,
            self.guarded,
            self.parallel,
            self.choice,
            self.repeat,
            self.switch,
        ]
        if scope.writable:
            composite.append(self.loop)
        kinds = simple
        if scope.depth < MAX_DEPTH:
            kinds = [*simple, *composite] if scope.depth < 2 else [*simple, *simple, *composite]
        if self.draw(st.integers(0, 24)) == 24:
            kinds = [self.failure]
        statement: tuple[str, _Scope] = self.pick(*kinds)(scope, indent)
        return statement

    def action(self, scope: _Scope, indent: str) -> tuple[str, _Scope]:
        key = self.name("a")
        self.results[key] = self.answers()
        attributes = [
            self.seldom(f"priority {self.draw(st.integers(-1, 2))}", 6),
            self.seldom(f"delay {self.duration()}", 6),
            self.seldom(f"timeout {self.duration()}", 5),
            self.retry(),
        ]
        if scope.writable and self.pick(False, True):
            values = ["out.v", "code", "out.v + 1", "out.missing ?? 7"]
            value = self.pick(*values, *([] if scope.in_reuse else ["ctx.attempt"]))
            attributes.append(f"set {self.pick(*scope.writable)} = {value}")
        told = "  ".join(filter(None, attributes))
        text = f"{indent}action {key} = t.do(x: {self.expression(scope)})"
        text += f" {{ {told} }}\n" if told else "\n"
        return text, replace(scope, tasks=(*scope.tasks, key))

    def answers(self) -> tuple[RandomResult, ...]:
        """Draws what the visits and attempts of an action get in turn, over and over."""
        count = self.pick(1, 1, 1, 2, 3)
        return tuple(
            RandomResult(
                self.pick(*_CODES), {"v": self.draw(st.integers(0, 3))}, self.pick(*_TAKES_MS)
            )
            for _ in range(count)
        )

    def retry(self) -> str:
        # No `jitter`: it depends on the id of the instance, which differs between engines.
        backoff = self.pick("", " backoff 2s factor 1.5 max 4s", " backoff 3s")
        listed = self.pick("", " on -1", " on 10013", " on -2, 10013")
        return self.seldom(f"retry {self.pick(1, 2)}{backoff}{listed}", 4)

    def sleep(self, scope: _Scope, indent: str) -> tuple[str, _Scope]:
        return f"{indent}sleep {self.duration()}\n", scope

    def assignment(self, scope: _Scope, indent: str) -> tuple[str, _Scope]:
        name = self.pick(*scope.writable)
        value = self.expression(scope)
        if name.startswith(_TYPED):
            value = f"var.{self.pick(*scope.untyped)}"
        return f"{indent}set {name} = {value}\n", scope

    def wait(self, scope: _Scope, indent: str) -> tuple[str, _Scope]:
        """Draws a WAIT_EVENT with an event type of its own; not all of them get their event."""
        key = self.name("w")
        self.waits.append(key)
        told = self.seldom(f"timeout {self.duration()}", 3)
        if scope.writable and self.pick(False, True):
            told += f" set {self.pick(*scope.writable)} = event.payload.v"
        return f'{indent}wait_event {key} on "{key}" {{ {told} }}\n', replace(
            scope, tasks=(*scope.tasks, key)
        )

    def failure(self, scope: _Scope, indent: str) -> tuple[str, _Scope]:
        code = -self.draw(st.integers(1, 9))
        name = self.pick(*scope.readable)
        condition = self.condition(scope)
        return f'{indent}if {condition} {{ fail {code} "v is ${{var.{name}}}" }}\n', scope

    def sequence(self, scope: _Scope, indent: str) -> tuple[str, _Scope]:
        body, after = self.block(replace(scope, depth=scope.depth + 1), 3, indent + "  ")
        return f"{indent}sequence {{\n{body}{indent}}}\n", replace(scope, tasks=after.tasks)

    def guarded(self, scope: _Scope, indent: str) -> tuple[str, _Scope]:
        """Draws a SEQUENCE with a scope of its own and `on_error`, `finally`, a time-out."""
        local = self.name("l")
        inner = replace(
            scope,
            depth=scope.depth + 1,
            readable=(*scope.readable, local),
            writable=(*scope.writable, local),
            is_root_scope=False,
        )
        declared, body, after = self.local(local, indent), "", inner
        if not self.pick(False, True):
            declared, after = "", replace(scope, depth=scope.depth + 1)
        body, after = self.block(after, 2, indent + "  ")
        handlers, after = self.handlers(after, indent)
        timeout = self.seldom(f" timeout {self.duration()}")
        text = (
            f"{indent}sequence {self.name('s')}{timeout} {{\n{declared}{body}{indent}}}{handlers}\n"
        )
        return text, replace(scope, tasks=after.tasks)

    def local(self, name: str, indent: str) -> str:
        return f"{indent}  var {name} : any = {self.pick(*_LITERALS)}\n"

    def typed(self, scope: _Scope, indent: str) -> str:
        """Declares a variable with a type, seldom; its value may not fit."""
        name, kind = self.name("t"), self.pick("int", "number?", "bool", "string?", "list<int>")
        value = self.pick(*scope.untyped)
        return self.seldom(f"{indent}  var {name} : {kind} = var.{value}\n", 8)

    def handlers(self, scope: _Scope, indent: str) -> tuple[str, _Scope]:
        """Draws `finally`, `on_error` or both, in which `ctx.error` may be read."""
        scope, text = replace(scope, in_handler=True), ""
        kinds = self.pick(("finally",), ("on_error",), ("on_error", "finally"), ("finally",))
        for kind in kinds:
            body, after = self.block(scope, 2, indent + "  ")
            text += f" {kind} {{\n{body}{indent}}}"
            scope = replace(scope, tasks=after.tasks)
        return text, scope

    def choice(self, scope: _Scope, indent: str) -> tuple[str, _Scope]:
        inner = replace(scope, depth=scope.depth + 1)
        then, after = self.block(inner, 2, indent + "  ")
        text = f"{indent}if {self.condition(scope)} {{\n{then}{indent}}}"
        tasks = after.tasks
        if self.pick(False, True):
            other, after_other = self.block(inner, 2, indent + "  ")
            text += f" else {{\n{other}{indent}}}"
            tasks = tuple(dict.fromkeys([*tasks, *after_other.tasks]))
        return text + "\n", replace(scope, tasks=tasks)

    def switch(self, scope: _Scope, indent: str) -> tuple[str, _Scope]:
        inner = replace(scope, depth=scope.depth + 1)
        one, after = self.block(inner, 1, indent + "    ")
        two, after_two = self.block(inner, 1, indent + "    ")
        subject = f"var.{self.pick(*scope.untyped)}"
        deeper = indent + "  "
        default = self.pick(*[f"{deeper}default {{ }}\n"] * 5, "")
        text = (
            f"{indent}switch {subject} {{\n{deeper}case 0, 1 {{\n{one}{deeper}}}\n"
            f'{deeper}case 2, "a" {{\n{two}{deeper}}}\n{default}{indent}}}\n'
        )
        tasks = tuple(dict.fromkeys([*after.tasks, *after_two.tasks]))
        return text, replace(scope, tasks=tasks)

    def parallel(self, scope: _Scope, indent: str) -> tuple[str, _Scope]:
        inner = replace(scope, depth=scope.depth + 1, writable=(), is_root_scope=False)
        text, tasks = "", scope.tasks
        for _ in range(self.draw(st.integers(2, 3))):
            local = self.name("l")
            branch_scope = replace(inner, readable=(*inner.readable, local), writable=(local,))
            body, after = self.block(branch_scope, 2, indent + "    ")
            handlers = ""
            if self.pick(False, False, True):
                handlers, after = self.handlers(after, indent + "  ")
            text += (
                f"{indent}  sequence {{\n{self.local(local, indent + '  ')}"
                f"{body}{indent}  }}{handlers}\n"
            )
            tasks = tuple(dict.fromkeys([*tasks, *after.tasks]))
        head = self.pick("", "", " limit 1", " limit 2")
        head += self.pick("", "", " join any", " join 2", " join 1", " join all")
        head += self.seldom(" keep_going") + self.seldom(f" timeout {self.duration()}", 5)
        return f"{indent}parallel{head} {{\n{text}{indent}}}\n", replace(scope, tasks=tasks)

    def each(self, scope: _Scope, indent: str) -> tuple[str, _Scope]:
        item, collected = self.name("i"), self.name("c")
        spread = self.pick("", " parallel", " parallel 2", "")
        batch = self.seldom(" batch 2")
        local = self.name("l")
        reuse = self.seldom(" reuse", 3)
        writable = (*scope.writable, local) if spread == reuse == "" else (local,)
        inner = replace(
            scope,
            depth=scope.depth + 1,
            # The compiler knows a batch to be a list; the copy in the local is of any type.
            readable=(*scope.readable, local) if batch else (*scope.readable, item, local),
            writable=writable,
            in_loop=True,
            is_root_scope=False,
            in_reuse=scope.in_reuse or bool(reuse),
        )
        body, after = self.block(inner, 2, indent + "  ")
        source = self.pick(
            "var.items", "[0, 1]", "[2, 0, 1]", "[]", "[1, null, 2]", "var.items", "var.v0"
        )
        collect = ""
        if self.pick(False, True):
            collect = f"{indent}  collect {collected} = {self.expression(inner)}\n"
            if scope.is_root_scope:
                self.collects.append(collected)
        head = spread + batch + reuse
        head += self.pick("", "", " tolerate 1", " tolerate 50%", " tolerate 34%", " tolerate 9")
        head += self.seldom(" keep_going") + self.seldom(f" timeout {self.duration()}", 5)
        text = (
            f"{indent}foreach {item} in {source}{head} {{\n"
            f"{indent}  var {local} : any = var.{item}\n"
            f"{self.typed(inner, indent)}{body}{collect}{indent}}}\n"
        )
        return text, scope if spread or reuse else replace(scope, tasks=after.tasks)

    def repeat(self, scope: _Scope, indent: str) -> tuple[str, _Scope]:
        counter = self.name("n")
        inner = replace(
            scope,
            depth=scope.depth + 1,
            readable=(*scope.readable, counter),
            in_loop=True,
            is_root_scope=False,
        )
        body, after = self.block(inner, 2, indent + "  ")
        count = self.pick("2", "0", "1", "(var.v1 % 4)")
        timeout = self.seldom(f" timeout {self.duration()}", 6)
        timeout += self.seldom(f" keep {self.pick(1, 2)}", 3)
        text = f"{indent}repeat {count} as {counter}{timeout} {{\n{body}{indent}}}\n"
        return text, replace(scope, tasks=after.tasks)

    def loop(self, scope: _Scope, indent: str) -> tuple[str, _Scope]:
        name = self.pick(*scope.writable)
        inner = replace(scope, depth=scope.depth + 1, in_loop=True, is_root_scope=False)
        body, after = self.block(inner, 1, indent + "  ")
        step = f"{indent}  set {name} = var.{name} + 1\n"
        most = self.pick(" max 5", " max 5", " max 2")
        most += self.seldom(f" timeout {self.duration()}", 6)
        most += self.seldom(f" keep {self.pick(1, 2)}", 3)
        text = f"{indent}while var.{name} < 3{most} {{\n{body}{step}{indent}}}\n"
        return text, replace(scope, tasks=after.tasks)


@st.composite
def programs(draw: Any, *, has_waits: bool = False) -> RandomProgram:
    """Draws a workflow `w` of all node types, with WAIT_EVENT only where `has_waits` (R17)."""
    writer = _Writer(draw, has_waits=has_waits)
    body, _ = writer.block(_Scope(0, _VARIABLES, _VARIABLES), 4, least=2)
    declared = "".join(
        f"  var {name} : {'int' if name.startswith(_TYPED) else 'any'}"
        f" = {writer.pick('0', '1', '2')}\n"
        for name in _VARIABLES
    )
    outputs = "".join(f" {name} = var.{name}," for name in (*_VARIABLES, *writer.collects))
    timeout = writer.seldom(f"  timeout {writer.pick('9s', '4s', '20s')}\n", 8)
    text = (
        f"workflow w {{\n{timeout}  input {{ items : list<any> = [1, 2, 3] }}\n{declared}"
        f"  output {{{outputs} }}\n{body}}}\n"
    )
    context = draw(st.sampled_from([{}, {"items": []}, {"items": [0, "a"]}]))
    seeds = st.integers(0, 99).map(lambda seed: Schedule(kind="seed", seed=seed))
    schedule = draw(st.one_of(st.just(IN_ORDER), st.just(REVERSE), seeds))
    sent = draw(st.lists(st.sampled_from(writer.waits), unique=True)) if writer.waits else []
    return RandomProgram(text, context, writer.results, schedule, tuple(sent))
