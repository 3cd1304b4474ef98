"""The GraphSpec: what the compiler makes and every back end runs (ruling R10).

It is flat and complete in itself: no list nests, every list is in tree order (pre-order of the
source), nodes are named by key. A back end needs nothing else.

A **program** is a list of instructions for a stack machine. Each instruction is a list whose first
element is its name:

    ["lit", value]                     push a JSON value
    ["var", name, owner, steps]        push a variable of the scope that node `owner` opens
    ["ctx", root, steps]               push from the context, e.g. ["ctx", "task", ["k", "output"]]
    ["out", steps] ["code"]            output and result code of the node being completed
    ["event", steps]                   the event being consumed: type, source, payload, …
    ["not"] ["neg"] ["len"]            one operand
    ["eq"] ["ne"] ["lt"] ["le"] ["gt"] ["ge"] ["in"] ["add"] ["sub"] ["mul"] ["div"] ["mod"]
    ["defined", reference]             push whether `reference` (a var/ctx/out/code/event
                                       instruction) finds something
    ["jf", n] ["jt", n]                `and` / `or`: see below
    ["bool"]                           replace the top by its truth value
    ["alt", n]                         `??`: see below
    ["arr", n] ["obj", keys] ["cat", n]  pop n values: an array, an object, a joined string

A step is a string (object key), an integer (array index) or a reference instruction whose value,
an integer, is the index.

Short circuits, with jumps that only go forward (`n` instructions are skipped after this one):
`a and b` is  a, ["jf", n], b, ["bool"]  and `a or b` is  a, ["jt", n], b, ["bool"]: "jf" pops the
top; if its truth value is false it pushes `false` and skips n instructions (b and its "bool"),
otherwise it goes on; "jt" is the same for true.
`a ?? b` is  a, ["alt", n], b: a reference directly before "alt" that finds nothing pushes the mark
"missing" instead of failing; "alt" looks at the top: if it is there and not null it skips n,
otherwise it pops it and goes on. Any other error in `a` is an error.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from compiler import json_values

SPEC_FORMAT: Literal[1] = 1

Program = list[list[Any]]
NodeType = Literal[
    "ACTION",
    "SEQUENCE",
    "PARALLEL",
    "IF",
    "SWITCH",
    "REPEAT",
    "WHILE",
    "FOREACH",
    "WAIT_EVENT",
]
EdgeKind = Literal[
    "SEQUENCE",
    "PARALLEL",
    "THEN",
    "ELSE",
    "CASE",
    "DEFAULT",
    "BODY",
    "ON_ERROR",
    "FINALLY",
    "TIMEOUT",
]


class _Row(BaseModel):
    # Strict: "1" is no number and true no 1, as in the databases that read the same documents.
    model_config = ConfigDict(
        extra="forbid", frozen=True, arbitrary_types_allowed=True, strict=True
    )


class TypeRow(_Row):
    """One row of the type table (R5). A root has no parent; fields and the item hang below."""

    id: int
    parent: int | None
    kind: Literal["root", "field", "item"]
    name: str | None
    base: Literal["string", "int", "number", "bool", "any", "object", "list"]
    required: bool
    nullable: bool
    enum: list[str] | None


class InputRow(_Row):
    """An input: `required` when it has no default; `program` is the default."""

    order: int
    name: str
    type: int
    required: bool
    program: Program | None


class VarRow(_Row):
    """A variable of the scope that node `owner` opens.

    kind: `var` was declared; `loop` is a FOREACH's item or index or a REPEAT's counter (owner: the
    body); `set` came to be by a `set` or `collect` on an undeclared name (R16), so it has no value
    at first.
    """

    owner: str
    order: int
    name: str
    kind: Literal["var", "loop", "set"]
    type: int | None
    program: Program | None


class OutputRow(_Row):
    order: int
    name: str
    program: Program


class NodeRow(_Row):
    """A node. `attributes` by type (keys with no value are left out):

    ACTION: action, revision, priority?, lease_ms?, timeout_ms?, delay_ms?, branch_variable?,
        retry? = {limit, backoff_ms, factor_hundredths, max_ms, jitter, on: ["any" | "lease" |
        code]}, dispatch? = {column: value}
    SEQUENCE: timeout_ms?; without children also fail? = {code: int < 0, message: Program} or
        sleep_ms?
    PARALLEL: limit?, join? (how many must succeed; left out: all), keep_going?, timeout_ms?
    IF, WHILE: condition (Program); WHILE also max, keep?, timeout_ms?
    SWITCH: subject (Program)
    REPEAT: count (Program), counter?, keep?, timeout_ms?
    FOREACH: item, index?, parallel (0: all at once, 1: one after the other, n: at most n), batch?,
        tolerate? = {count} | {percent}, keep_going?, timeout_ms?,
        reuse? = {fingerprint: 64 hex digits, reads: [reference instruction]} (S9.1)
    WAIT_EVENT: event_type, correlate? (Program), timeout_ms?

    A time-out and a retry of the catalog stand in the node like its own.
    """

    key: str
    type: NodeType
    generated: bool
    attributes: dict[str, Any]


class EdgeRow(_Row):
    """`order` counts all edges of one parent from 0; `case` lists the values of a CASE."""

    parent: str
    child: str
    kind: EdgeKind
    order: int
    case: list[Any] | None


class TemplateRow(_Row):
    """The input of an ACTION. A string in it may hold `${var.…}` or `${ctx.…}`; `$${` is `${`."""

    node: str
    json_: Any = Field(alias="json")
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class InputBindingRow(_Row):
    """Fills the place that JSON pointer `pointer` names in the node's template."""

    node: str
    pointer: str
    program: Program


class OutputBindingRow(_Row):
    """`var`: a `set`, run when `node` succeeds. `collect`: `node` is the FOREACH; the program runs
    in the scope of an iteration that has succeeded. Both write variable `name` of scope `owner`."""

    node: str
    order: int
    kind: Literal["var", "collect"]
    name: str
    owner: str
    program: Program


class CollectionBindingRow(_Row):
    """Where a FOREACH's array comes from (R39); `kind` tells what `program` is."""

    node: str
    kind: Literal["variable", "context", "task_output", "program"]
    program: Program


class Dispatch(_Row):
    max_per_worker: int | None = None
    exclusive_worker: bool = False
    affinity_key_field: str | None = None
    prefer_previous_worker: bool = False
    prefer_continue_group: bool = False
    require_previous_worker: bool = False
    max_concurrent: int | None = None
    rate_per_minute: int | None = None
    max_deliveries: int = 5


class ActionRow(_Row):
    """An action as the catalog describes it. `revision` is the hash of what a version freezes
    (everything but `capability` and `dispatch`, R24)."""

    name: str
    revision: str
    description: str | None
    version: str | None
    capability: str
    input_schema: dict[str, Any] | None
    output_schema: dict[str, Any] | None
    result_codes: dict[str, str]
    idempotent: bool
    timeout_ms: int | None
    sensitive: list[str]
    dispatch: Dispatch


class SubscriptionRow(_Row):
    """An `on event`, or the unfiltered `signal_wait` of a WAIT_EVENT that none narrows (R18).

    filter: [{path: [key], value: scalar}], fields of the payload; inputs: [{name, program}], whose
    programs see only the event. A program that finds nothing leaves its input out. An `on event`
    that starts and names no input takes each from the payload's field of its name.
    """

    event_type: str
    mode: Literal["start_instance", "signal_wait", "start_or_signal"]
    filter: list[dict[str, Any]]
    inputs: list[dict[str, Any]]


class SourceMap(_Row):
    """Line and column (from 1) of every node; no part of the content hash (R11)."""

    file: str
    nodes: dict[str, tuple[int, int]]
    model_config = ConfigDict(strict=False)  # a JSON array may be the pair


class GraphSpec(_Row):
    spec_format: Literal[1]
    name: str
    description: str | None
    types: list[TypeRow]
    inputs: list[InputRow]
    vars: list[VarRow]
    outputs: list[OutputRow]
    nodes: list[NodeRow]
    edges: list[EdgeRow]
    templates: list[TemplateRow]
    input_bindings: list[InputBindingRow]
    output_bindings: list[OutputBindingRow]
    collection_bindings: list[CollectionBindingRow]
    actions: list[ActionRow]
    subscriptions: list[SubscriptionRow]
    source_map: SourceMap | None

    def to_json_value(self) -> dict[str, Any]:
        """Returns the document as plain JSON values; numbers stay int or Decimal."""
        return self.model_dump(mode="python", by_alias=True)

    def content_hash(self) -> str:
        """SHA-256 over the canonical JSON without positions and descriptions (R11).

        Numbers keep their zeros: a program with `1.0` is another one than with `1`.
        """
        document = self.to_json_value()
        del document["source_map"], document["description"]
        for action in document["actions"]:
            del action["description"]
        return json_values.exact_sha256_hex(document)


def parse_spec(text: str) -> GraphSpec:
    """Reads a GraphSpec document.

    Raises:
      pydantic.ValidationError: a field is missing, surplus or of the wrong type.
      json_values.UnstorableValue: a value that no engine can store.
    """
    return GraphSpec.model_validate(json_values.loads(text))


def dump_spec(spec: GraphSpec) -> str:
    """Writes a GraphSpec as JSON, two blanks of indentation, ending in a newline."""
    return json_values.dumps(spec.to_json_value(), indent=2) + "\n"


__all__ = [
    "SPEC_FORMAT",
    "ActionRow",
    "CollectionBindingRow",
    "Decimal",
    "Dispatch",
    "EdgeKind",
    "EdgeRow",
    "GraphSpec",
    "InputBindingRow",
    "InputRow",
    "NodeRow",
    "NodeType",
    "OutputBindingRow",
    "OutputRow",
    "Program",
    "SourceMap",
    "SubscriptionRow",
    "TemplateRow",
    "TypeRow",
    "VarRow",
    "dump_spec",
    "parse_spec",
]
