"""The published JSON Schema of the GraphSpec, made from the pydantic models.

`python -m compiler.spec_schema` writes `graphspec.schema.json` anew; a test holds the two together.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from compiler.spec import GraphSpec

PATH = Path(__file__).with_name("graphspec.schema.json")


def graphspec_schema() -> dict[str, Any]:
    """Returns the JSON Schema 2020-12 of a GraphSpec document."""
    schema = GraphSpec.model_json_schema(by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "wfsql GraphSpec",
    }


def schema_text() -> str:
    """Returns the text of the published file."""
    return json.dumps(graphspec_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(schema_text(), "utf-8")
