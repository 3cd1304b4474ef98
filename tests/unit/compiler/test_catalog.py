"""The action catalog: what is read, what is refused, and where in the YAML file."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from compiler.catalog import catalog_schema, discover_catalogs, load_catalog
from compiler.pipeline import check_text
from compiler.schema_check import accepts, is_plain_schema, misfits, schema_problem
from compiler.supported import CATALOG_NOT_YET
from compiler.yaml_reader import read_yaml
from dsl.source import SourceFile

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_text(text: str) -> Path:
        path = tmp_path / "c.actions.yaml"
        path.write_text(text, "utf-8")
        return path

    return write_text


REFUSED = [
    ("not YAML", "WF302", "actions: [«»", "not YAML: did not find expected node content"),
    ("repeated key", "WF302", "actions: []\n«actions»: []", None),
    ("alias", "WF302", "actions: [*«a»]", None),
    ("anchor", "WF302", "actions: «&a []»", "anchors are not allowed here"),
    ("tag", "WF302", "actions: «!!python/name:os.system x»", "tags are not allowed here"),
    ("two documents", "WF302", "actions: []\n«---»\nactions: []", None),
    ("empty file", "WF302", "«#» nothing", "the file is empty"),
    ("a list", "WF303", "«- name: a»", "a mapping is wanted here, not a list"),
    ("no actions", "WF303", "«{}»", '"actions" is missing'),
    ("unknown key", "WF303", "actions:\n  - name: a\n    «inptu»: {}", 'unknown key "inptu"'),
    ("no name", "WF303", "actions:\n  - «idempotent: true»", '"name" is missing'),
    ("name", "WF303", "actions: [{name: «a b»}]", '"a b" has not the form wanted here'),
    (
        "type of a value",
        "WF303",
        "actions: [{name: a, idempotent: «no»}]",
        "true or false is wanted here, not a string",
    ),
    ("number as a version", "WF303", "actions: [{name: a, version: «1.0»}]", None),
    ("result code", "WF303", "actions: [{name: a, result_codes: «{x: ok}»}]", None),
    (
        "duplicate action",
        "WF304",
        "actions:\n  - name: a\n  - name: «a»",
        'action "a" is described twice',
    ),
    (
        "short type",
        "WF305",
        'actions: [{name: a, input: "{ a: «}»"}]',
        "this is not a type: expected a type, found `}`",
    ),
    (
        "short type without its end",
        "WF305",
        'actions: [{name: a, input: «"{ a: int"»}]',
        "this is not a type",
    ),
    (
        "short type with an escape",
        "WF305",
        'actions: [{name: a, input: «"{\\u0020a: strin }"»}]',
        'unknown type "strin"',
    ),
    (
        "type without quotes",
        "WF305",
        "actions: [{name: a, input: { «text»: string }}]",
        '"text" is no keyword of JSON Schema',
    ),
    (
        "type without quotes inside a schema",
        "WF305",
        "actions: [{name: a, input: {properties: {b: { «c»: int }}}}]",
        '"c" is no keyword of JSON Schema',
    ),
    (
        "tab",
        "WF302",
        "actions:\n«\t»- name: a",
        "not YAML: found character that cannot start any token",
    ),
    (
        "two types in one",
        "WF305",
        'actions: [{name: a, input: «"int type B = int"»}]',
        "this is not a type",
    ),
    ("unknown type", "WF305", 'actions: [{name: a, input: "«strin»"}]', 'unknown type "strin"'),
    (
        "no schema",
        "WF305",
        "actions: [{name: a, input: «{type: strin}»}]",
        None,
    ),
    (
        "a pointer to neither input nor output",
        "WF303",
        'actions: [{name: a, sensitive: [«"/card"»]}]',
        '"/card" has not the form wanted here',
    ),
    (
        "a pointer with a bare tilde",
        "WF303",
        'actions: [{name: a, sensitive: [«"/input/a~b"»]}]',
        '"/input/a~b" has not the form wanted here',
    ),
    (
        "a pointer to a field that is not there",
        "WF303",
        'actions: [{name: a, input: "{ card: string }", sensitive: [/input/card, «/input/crad»]}]',
        '"/input/crad" points nowhere: an object has no field "crad"',
    ),
    (
        "a pointer into a string",
        "WF303",
        'actions: [{name: a, output: "{ card: string }", sensitive: [«/output/card/number»]}]',
        '"/output/card/number" points nowhere: a string has no field "number"',
    ),
    (
        "a pointer to a field of a list",
        "WF303",
        'actions: [{name: a, input: "{ l: list<{ a: int }> }", sensitive: [«/input/l/a»]}]',
        '"/input/l/a" points nowhere: a list has no field "a"',
    ),
]


@pytest.mark.parametrize(
    ("code", "marked", "message"), [pytest.param(*case[1:], id=case[0]) for case in REFUSED]
)
def test_refused_with_code_and_place(
    write: Write, code: str, marked: str, message: str | None
) -> None:
    start = marked.index("«")
    (found,) = load_catalog([write(marked.replace("«", "").replace("»", ""))]).diagnostics
    assert found.code == code
    # A finding about nothing (an empty file) stands at the beginning.
    assert found.span.start in (start, start - 1)
    assert message is None or found.message == message


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("input: { text: string, n: int }", 'put the type in quotes: "{ text: string, n: int }"'),
        ('input: "{ text: strng }"', 'did you mean "string"?'),
        ('input: "{ text: string[] }"', "a list is written `list<string>`"),
        ("\tinput: {}", "YAML takes no tabs: indent with spaces"),
    ],
)
def test_a_hint_says_how_to_mend_it(write: Write, text: str, hint: str) -> None:
    (found,) = load_catalog([write(f"actions:\n  - name: a\n    {text}\n")]).diagnostics
    assert found.hint == hint


def test_a_schema_with_keywords_of_its_owner_is_taken(write: Write) -> None:
    text = "actions: [{name: a, input: {type: object, x-kind: string, default: {a: int}}}]"
    assert load_catalog([write(text)]).diagnostics == ()


def test_a_directory_is_no_catalog(tmp_path: Path) -> None:
    (found,) = load_catalog([tmp_path]).diagnostics
    assert (found.code, found.hint) == ("WF301", "name the `*.actions.yaml` files inside it")


def test_a_catalog_over_five_megabytes_is_refused(write: Write) -> None:
    (found,) = load_catalog([write("#" * (5 * 1024 * 1024 + 1))]).diagnostics
    assert (found.code, found.hint) == ("WF301", "split it into several `*.actions.yaml` files")


@pytest.mark.parametrize(
    ("name", "prepare", "message"),
    [
        ("gone", lambda path: None, "there is no such catalog file"),
        ("folder", lambda path: path.mkdir(), "this is a directory, not a catalog file"),
        (
            "bytes",
            lambda path: path.write_bytes(b"a\xff"),
            "the catalog is not UTF-8 text (byte 1)",
        ),
        (
            "large",
            lambda path: path.write_bytes(b"#" * (5 * 1024 * 1024 + 1)),
            "the catalog is larger than 5 MB",
        ),
    ],
)
def test_unreadable_file_gives_one_diagnostic(
    tmp_path: Path, name: str, prepare: Callable[[Path], Any], message: str
) -> None:
    path = tmp_path / name
    prepare(path)
    (found,) = load_catalog([path]).diagnostics
    assert (found.code, found.message) == ("WF301", message)


def test_one_slip_hides_nothing_else(write: Write) -> None:
    path = write("actions:\n  - name: good\n  - nam: bad\n  - name: also_good\n    inputs: {}\n")
    result = load_catalog([path])
    assert list(result.actions) == ["good"]
    assert [(d.code, d.source.position(d.span.start).line) for d in result.diagnostics] == [
        ("WF303", 3),
        ("WF303", 3),
        ("WF303", 5),
    ]


def test_short_type_becomes_json_schema(write: Write) -> None:
    path = write(
        'actions: [{name: a, input: "{ a: string?, b?: list<int>, c: \\"x\\" | \\"y\\" }"}]'
    )
    assert load_catalog([path]).actions["a"].input_schema == {
        "type": "object",
        "properties": {
            "a": {"type": ["string", "null"]},
            "b": {"type": "array", "items": {"type": "integer"}},
            "c": {"type": "string", "enum": ["x", "y"]},
        },
        "required": ["a", "c"],
    }


def test_json_schema_is_taken_as_it_is(write: Write) -> None:
    schema = "{type: object, properties: {a: {type: string, minLength: 1}}, required: [a]}"
    action = load_catalog([write(f"actions: [{{name: a, input: {schema}}}]")]).actions["a"]
    assert action.input_schema == {
        "type": "object",
        "properties": {"a": {"type": "string", "minLength": 1}},
        "required": ["a"],
    }


def test_capability_is_no_part_of_the_revision(write: Write) -> None:
    texts = ("{name: a}", "{name: a, capability: x, description: y}", "{name: a, version: '2'}")
    revisions = [load_catalog([write(f"actions: [{t}]")]).actions["a"].revision for t in texts]
    assert revisions[0] == revisions[1]
    assert revisions[0] != revisions[2]


def test_catalogs_beside_the_workflow_are_found_by_name(tmp_path: Path) -> None:
    for name in ("b.actions.yaml", "a.actions.yaml", "c.yaml"):
        (tmp_path / name).write_text("actions: []", "utf-8")
    found = [path.name for path in discover_catalogs(tmp_path / "x.wf")]
    assert found == ["a.actions.yaml", "b.actions.yaml"]


def test_workflow_without_any_catalog_gets_one_diagnostic() -> None:
    text = "workflow w { action a = x.y() action b = x.z() }"
    (found,) = check_text(text, "w.wf").diagnostics
    assert (found.code, found.span.start) == ("WF306", text.index("x.y"))


def test_broken_catalog_brings_no_unknown_actions(write: Write) -> None:
    path = write("actions: [{nam: x.y}]")
    found = check_text("workflow w { action a = x.y() }", "w.wf", [path]).diagnostics
    assert {diagnostic.code for diagnostic in found} == {"WF303"}


SCALARS = {
    "no": "no",
    "010": "010",
    "1:30": "1:30",
    "2024-01-01": "2024-01-01",
    "1e3": 1000,
    "1.50": Decimal("1.50"),
    "true": True,
    "null": None,
    '"1"': "1",
    "9007199254740993": 9007199254740993,
}


@pytest.mark.parametrize(("text", "value"), SCALARS.items(), ids=SCALARS.keys())
def test_scalar_has_the_type_that_json_gives_it(text: str, value: object) -> None:
    read = read_yaml(SourceFile("x.yaml", f"a: {text}")).value()["a"]
    assert (read, type(read)) == (value, type(value))


def test_places_count_characters_not_bytes() -> None:
    source = SourceFile("x.yaml", "# é😀\nb: [é, x]\n")
    node = read_yaml(source).child("b")
    assert node is not None
    assert source.text[node.span.start : node.span.end] == "[é, x]"


DOCUMENTS: list[Any] = [
    {},
    [],
    {"actions": []},
    {"actions": [{"name": "a.b-c"}]},
    {"actions": [{"name": "a..b"}]},
    {"actions": [{"name": "a\n"}]},
    {"actions": [{"name": 1}]},
    {"actions": [{"name": "a", "result_codes": {"0": "ok", "-3": "bad"}}]},
    {"actions": [{"name": "a", "result_codes": {"00": "ok"}}]},
    {"actions": [{"name": "a", "result_codes": {"0": "not ok"}}]},
    {"actions": [{"name": "a", "dispatch": {"max_per_worker": 0}}]},
    {"actions": [{"name": "a", "dispatch": {"max_per_worker": 1}}]},
    {"actions": [{"name": "a", "retry": {"attempts": 1, "factor": Decimal("1.5")}}]},
    {"actions": [{"name": "a", "retry": {"attempts": True}}]},
    {"actions": [{"name": "a", "retry": {"attempts": 1, "factor": 101}}]},
    {"actions": [{"name": "a", "sensitive": ["/a", "b"]}]},
    {"actions": [{"name": "a", "sensitive": ["/input", "/output/a~1b/0", "/input/~"]}]},
    {"actions": [{"name": "a", "sensitive": ["/input", "/output/a~1b/0", "/input/"]}]},
    {"actions": [{"name": "a", "capability": ""}]},
    {"actions": [{"name": "a" * 121}]},
]


POINTERS = [
    "/input",
    "/output",
    "/input/card/number",
    "/input/rows/0/a",
    "/input/rows",
    "/input/open/whatever/1",
    "/input/a~1b~0c",
    "/output/any/thing",
]


@pytest.mark.parametrize("pointer", POINTERS)
def test_pointer_to_what_may_be_there_is_kept(write: Write, pointer: str) -> None:
    properties = "a/b~c: {}, open: {type: object}"
    rows = "rows: {items: {properties: {a: {}}}, type: array}"
    card = "card: {properties: {number: {}}}"
    schema = "{type: object, properties: {" + f"{properties}, {rows}, {card}" + "}}"
    result = load_catalog(
        [write(f"actions: [{{name: a, input: {schema}, sensitive: [{pointer}]}}]")]
    )
    assert result.diagnostics == ()
    assert result.actions["a"].sensitive == (pointer,)


def test_what_no_engine_runs_yet_is_refused_by_name(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CATALOG_NOT_YET, "sensitive", "`sensitive`")  # type: ignore[arg-type]
    (found,) = load_catalog([write("actions: [{name: a, sensitive: [/input]}]")]).diagnostics
    assert (found.code, found.message) == ("WF090", "`sensitive` is not supported yet")


def test_every_dispatch_column_of_a_catalog_is_kept(write: Write) -> None:
    text = (
        "max_per_worker: 1, exclusive_worker: true, affinity_key_field: id, "
        "prefer_previous_worker: true, prefer_continue_group: true, "
        "require_previous_worker: true, max_concurrent: 2, rate_per_minute: 30, max_deliveries: 3"
    )
    result = load_catalog([write(f"actions: [{{name: a, dispatch: {{{text}}}}}]")])
    assert result.diagnostics == ()
    assert result.actions["a"].dispatch == {
        "max_per_worker": 1,
        "exclusive_worker": True,
        "affinity_key_field": "id",
        "prefer_previous_worker": True,
        "prefer_continue_group": True,
        "require_previous_worker": True,
        "max_concurrent": 2,
        "rate_per_minute": 30,
        "max_deliveries": 3,
    }


@pytest.mark.parametrize("column", ["max_concurrent", "rate_per_minute", "max_deliveries"])
def test_limit_of_zero_is_refused(write: Write, column: str) -> None:
    (found,) = load_catalog(
        [write(f"actions: [{{name: a, dispatch: {{{column}: 0}}}}]")]
    ).diagnostics
    assert (found.code, found.message) == ("WF303", "0 is out of range: at least 1")


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_quick_answer_agrees_with_jsonschema(document: Any) -> None:
    assert accepts(catalog_schema(), document) == (misfits(catalog_schema(), document) == [])


SCHEMAS: list[Any] = [
    {"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]},
    {"type": "array", "items": {"enum": [1, "x"]}, "description": "d"},
    {"type": "strin"},
    {"type": []},
    {"properties": {"a": 1}},
    {"required": ["a", "a"]},
    {"minLength": -1},
    {"items": [{}]},
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_plain_schema_is_a_valid_one(schema: Any) -> None:
    assert not is_plain_schema(schema) or schema_problem(schema) is None


def test_everyday_schema_is_plain() -> None:
    assert is_plain_schema(SCHEMAS[0])
