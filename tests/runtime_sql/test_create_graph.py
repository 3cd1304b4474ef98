"""wf.wf_repo_create_workflow_graph: the rows of the script, the codes of the compiler's check."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import psycopg
import pytest

from compiler import json_values, supported
from compiler.pipeline import compile_file
from compiler.spec import GraphSpec, dump_spec
from compiler.verify_attributes import FLAGS, LEAST, RETRY_LEAST
from compiler.verify_nodes import (
    ATTRIBUTES,
    LEGAL_EDGES,
    MANY,
    MOST_INTEGER,
    MOST_MILLISECONDS,
    NEEDED,
    TEXTS,
)
from emit_pg.emitter import emit
from tests.unit.emit.small_specs import NODE_TYPES, awkward
from wfsql.embedded import EmbeddedServer

TESTS = Path(__file__).parents[1]
CASES = sorted((TESTS / "corpus" / "err").glob("WF6*/*.spec.json"))
PROGRAMS = sorted(
    [
        *(TESTS / "corpus" / "good").glob("*.wf"),
        *(TESTS / "golden" / "spec" / "programs").glob("*.wf"),
        *(TESTS / "golden" / "spec" / "programs_ahead").glob("*.wf"),
        *(TESTS / "conformance").glob("*.wf"),
    ]
)
TABLES = (
    "workflow_def",
    "workflow_version",
    "workflow_action",
    "workflow_action_revision",
    "workflow_version_action",
    "data_type",
    "workflow_node",
    "workflow_edge",
    "workflow_input_template",
    "workflow_input_binding",
    "variable_output_binding",
    "node_scope_default",
    "collection_binding",
    "event_subscription",
)

ONLY_THE_COMPILER = {
    # The database runs these, or cannot know better before a value is asked for.
    "WF607-task",
    "WF610-variables",
    "WF613-program",
    "WF613-set",
    "WF619-inputs",
}
"""Cases that verify_spec refuses and a database does not."""

Connection = psycopg.Connection[Any]


@pytest.fixture
def connection(rolled_back: Connection) -> Connection:
    return rolled_back


def create(connection: Connection, document: str, **options: bool) -> tuple[Any, ...]:
    row = connection.execute(
        "select * from wf.wf_repo_create_workflow_graph(%s::jsonb, %s, %s)",
        [document, options.get("activate", True), options.get("update_actions", False)],
    ).fetchone()
    assert row is not None
    return tuple(row)


def refusal(connection: Connection, document: str) -> tuple[str, str]:
    """Returns number and text of the error that a document gives, and checks nothing changed."""
    before = counts(connection)
    with pytest.raises(psycopg.Error) as refused, connection.transaction():
        create(connection, document)
    assert counts(connection) == before
    diag = refused.value.diag
    return str(diag.message_detail), str(diag.message_primary)


def counts(connection: Connection) -> list[int]:
    return [
        connection.execute(f"select count(*) from wf.{table}").fetchone()[0]  # type: ignore[arg-type,index]
        for table in TABLES
    ]


# --- the same codes ---


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}-{path.stem[:-5]}")
def test_a_graph_is_refused_with_the_code_of_the_compilers_check(
    connection: Connection, path: Path
) -> None:
    code = path.parent.name
    try:
        document = json.dumps(json.loads(path.read_text()))
    except json.JSONDecodeError:
        pytest.skip("no JSON reaches the routine")
    if f"{code}-{path.stem[:-5]}" in ONLY_THE_COMPILER:
        create(connection, document)
        return
    number, text = refusal(connection, document)
    assert (number, text[:7]) == ("20006" if code == "WF602" else "20007", f"{code}: ")


@pytest.mark.parametrize("document", ["null", "[]", "3", '"x"', "{}", '{"spec_format": "1"}'])
def test_what_is_no_graph_is_refused(connection: Connection, document: str) -> None:
    assert refusal(connection, document)[1].startswith("WF601: ")


def test_an_sql_null_is_refused(connection: Connection) -> None:
    with pytest.raises(psycopg.Error) as refused:
        connection.execute("select wf.wf_repo_create_workflow_graph(null)")
    assert refused.value.diag.message_primary == "WF601: a graph is an object"


def sound() -> dict[str, Any]:
    """A graph with a row in every list."""
    document: dict[str, Any] = json.loads(dump_spec(NODE_TYPES["action"]))
    foreach = json.loads(dump_spec(NODE_TYPES["foreach"]))
    document["collection_bindings"] = foreach["collection_bindings"]
    document["subscriptions"] = [
        {"event_type": "e", "mode": "signal_wait", "filter": [], "inputs": []}
    ]
    return document


@pytest.mark.parametrize("field", list(GraphSpec.model_fields))
def test_a_document_without_a_field_is_refused(connection: Connection, field: str) -> None:
    document = sound()
    del document[field]
    assert refusal(connection, json.dumps(document)) == (
        "20007",
        f"WF601: {field} is missing",
    )


@pytest.mark.parametrize("field", list(GraphSpec.model_fields))
def test_a_field_of_another_type_is_refused(connection: Connection, field: str) -> None:
    document = sound()
    document[field] = True
    assert refusal(connection, json.dumps(document)) == (
        "20007",
        f"WF601: {field} has another type",
    )


LISTS = [name for name, value in sound().items() if isinstance(value, list) and value]


@pytest.mark.parametrize("field", LISTS)
@pytest.mark.parametrize("change", ["no object", "unknown", "missing", "other type"])
def test_a_row_that_is_none_is_refused(connection: Connection, field: str, change: str) -> None:
    document = sound()
    row = document[field][0]
    name = next(iter(row))
    match change:
        case "no object":
            document[field].append([])
            expected = f"WF601: row {len(document[field]) - 1} of {field} is no object"
        case "unknown":
            row["colour"] = 1
            expected = f"WF601: colour in row 0 of {field} is not known"
        case "missing":
            del row[name]
            expected = f"WF601: {name} in row 0 of {field} is missing"
        case _:
            row[name] = [[]]
            expected = f"WF601: {name} in row 0 of {field} has another type"
    assert refusal(connection, json.dumps(document)) == ("20007", expected)


@pytest.mark.parametrize("number", ["1.5", "1e30", "99999999999", "-5000000000"])
def test_a_number_that_fits_no_column_is_refused(connection: Connection, number: str) -> None:
    document = sound()
    document["edges"][0]["order"] = "NUMBER"
    text = json.dumps(document).replace('"NUMBER"', number)
    assert refusal(connection, text) == (
        "20007",
        "WF601: order in row 0 of edges has another type",
    )


def test_a_document_that_is_too_deep_is_refused(connection: Connection) -> None:
    document = sound()
    document["templates"][0]["json"] = json.loads("[" * 200 + "]" * 200)
    text = "WF601: a value nested deeper than 100 levels cannot be stored"
    assert refusal(connection, json.dumps(document)) == ("20007", text)


def test_a_document_that_is_too_large_is_refused(connection: Connection) -> None:
    document = sound()
    document["templates"][0]["json"] = os.urandom(9_000_000).hex()
    assert refusal(connection, json.dumps(document)) == (
        "20005",
        "the graph has more than 16 MB",
    )


# --- the same rows ---


def rows_of(url: str, texts: list[str], specs: list[GraphSpec]) -> dict[str, list[Any]]:
    """Returns the rows of every definition table after specs came in as texts, or as scripts."""
    with psycopg.connect(url, autocommit=True) as connection:
        for text in texts:
            create(connection, text)
        for spec in specs:
            connection.execute(emit(spec).encode())
        found = {}
        for table in TABLES:
            rows = connection.execute(
                f"select (to_jsonb(r) - array['created_at', 'published_at'])::text from wf.{table} r"  # type: ignore[arg-type]  # noqa: E501
            ).fetchall()
            found[table] = sorted(row[0] for row in rows)
        return found


def compiled_specs(monkeypatch: pytest.MonkeyPatch) -> list[GraphSpec]:
    for table in (supported.NOT_YET, supported.CATALOG_NOT_YET):
        for key in list(table):
            monkeypatch.delitem(table, key)  # type: ignore[arg-type]
    catalogs = {"good": [TESTS / "corpus" / "corpus.actions.yaml"]}
    specs = {
        spec.name.lower(): spec
        for path in PROGRAMS
        for spec in compile_file(path, catalogs.get(path.parent.name)).specs
    }
    return list(specs.values())


def test_both_roads_lead_to_the_same_rows(
    pg_server: EmbeddedServer, pg_template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs = [*compiled_specs(monkeypatch), awkward(), NODE_TYPES["action"]]
    assert len(specs) > 60
    # One database has one live row per action, so each spec gets catalogs of its own kind.
    seen: dict[str, Any] = {}
    alike = []
    for spec in specs:
        live = {a.name: (a.capability, a.dispatch) for a in spec.actions}
        if all(seen.get(name, value) == value for name, value in live.items()):
            seen |= live
            alike.append(spec)
    assert len(alike) > 50
    urls = [pg_server.create_database(f"roads{os.getpid()}_{n}", pg_template) for n in (1, 2)]
    by_json = rows_of(urls[0], [dump_spec(spec) for spec in alike], [])
    by_script = rows_of(urls[1], [], alike)
    for table in TABLES:
        assert by_json[table] == by_script[table], table
    for n in (1, 2):
        pg_server.drop_database(f"roads{os.getpid()}_{n}")


def test_the_hash_is_that_of_the_compiler(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for spec in [*compiled_specs(monkeypatch), awkward(), *NODE_TYPES.values()]:
        row = connection.execute("select wf.wf_graph_hash(%s)", [dump_spec(spec)]).fetchone()
        assert row == (spec.content_hash(),), spec.name


def test_dispatch_columns_may_be_left_out(connection: Connection) -> None:
    document = json.loads(dump_spec(NODE_TYPES["parallel"]))
    for action in document["actions"]:
        action["dispatch"] = {}
    create(connection, json.dumps(document))
    (stored,) = connection.execute("select content_hash from wf.workflow_version").fetchone() or ()
    assert stored == NODE_TYPES["parallel"].content_hash()


def test_the_answer_names_what_was_made(connection: Connection) -> None:
    def_id, version_id, root_id, name = create(connection, dump_spec(NODE_TYPES["if"]))
    assert name == "choice"
    assert connection.execute(
        "select v.workflow_def_id, v.is_active, n.node_key from wf.workflow_version v"
        " join wf.workflow_node n on n.node_id = %s where v.workflow_version_id = %s",
        [root_id, version_id],
    ).fetchone() == (def_id, True, "choice")


def test_known_content_adds_no_row_and_becomes_active_again(connection: Connection) -> None:
    first = create(connection, dump_spec(NODE_TYPES["sequence"]))
    other = NODE_TYPES["parallel"].model_copy(update={"name": "steps"})
    other = other.model_copy(
        update={
            "nodes": [
                n.model_copy(update={"key": n.key.replace("both", "steps")}) for n in other.nodes
            ],
            "edges": [
                e.model_copy(update={"parent": e.parent.replace("both", "steps")})
                for e in other.edges
            ],
        }
    )
    second = create(connection, dump_spec(other))
    assert second[1] != first[1]
    before = counts(connection)
    assert create(connection, dump_spec(NODE_TYPES["sequence"])) == first
    assert counts(connection) == before
    assert connection.execute(
        "select workflow_version_id from wf.workflow_version where is_active"
    ).fetchall() == [(first[1],)]


def test_a_version_may_stay_inactive(connection: Connection) -> None:
    create(connection, dump_spec(NODE_TYPES["sequence"]), activate=False)
    assert connection.execute("select is_active from wf.workflow_version").fetchall() == [(False,)]


def test_a_changed_dispatch_column_is_refused_unless_it_is_taken_over(
    connection: Connection,
) -> None:
    create(connection, dump_spec(NODE_TYPES["sequence"]))
    document = json.loads(dump_spec(NODE_TYPES["parallel"]))
    document["actions"][0]["capability"] = "other"
    assert refusal(connection, json.dumps(document))[0] == "20010"
    create(connection, json.dumps(document), update_actions=True)
    assert connection.execute("select capability from wf.workflow_action").fetchall() == [
        ("other",)
    ]


# --- the tables of the checks are those of the compiler ---


def test_the_edge_rules_are_those_of_the_compiler(connection: Connection) -> None:
    rows = connection.execute(
        "select node_type, branch_kind, max_count is null, is_needed from wf.edge_rule"
    ).fetchall()
    expected = {
        (node_type, kind, kind in MANY, kind in NEEDED)
        for node_type, kinds in LEGAL_EDGES.items()
        for kind in kinds
    }
    assert set(rows) == expected


def test_the_attribute_rules_are_those_of_the_compiler(connection: Connection) -> None:
    in_columns = {"action", "revision"}
    expected = {
        (node_type, name, index == 0)
        for node_type, groups in ATTRIBUTES.items()
        for index, names in enumerate(groups)
        for name in names.split()
        if name not in in_columns
    } | {("retry", name, True) for name in RETRY_LEAST}
    rows = connection.execute(
        "select node_type, attribute, is_needed from wf.attribute_rule"
    ).fetchall()
    assert set(rows) == expected
    kinds = dict(
        connection.execute("select distinct attribute, kind from wf.attribute_rule").fetchall()
    )
    assert {name for name, kind in kinds.items() if kind == "text"} == {*TEXTS} - in_columns
    assert {name for name, kind in kinds.items() if kind == "flag"} == {*FLAGS}
    least = dict(
        connection.execute(
            "select distinct attribute, least from wf.attribute_rule"
            " where kind = 'integer' and attribute <> 'priority'"
        ).fetchall()
    )
    assert least == LEAST | RETRY_LEAST
    most = connection.execute(
        "select distinct attribute like '%\\_ms', most from wf.attribute_rule"
    ).fetchall()
    assert dict(most) == {True: MOST_MILLISECONDS, False: MOST_INTEGER}


def test_the_fields_are_those_of_the_compiler(connection: Connection) -> None:
    schema = json_values.loads(
        (TESTS.parent / "compiler" / "graphspec.schema.json").read_text("utf-8")
    )
    documents = {"": schema} | {
        name: schema["$defs"][items["$ref"].rpartition("/")[2]]
        for name, field in schema["properties"].items()
        if "$ref" in (items := field.get("items", {}))
    }
    documents["dispatch"] = schema["$defs"]["Dispatch"]
    expected = {
        (name, field, field in document.get("required", []))
        for name, document in documents.items()
        for field in document["properties"]
    }
    rows = connection.execute("select list, field, is_needed from wf.graph_field").fetchall()
    assert set(rows) == expected
