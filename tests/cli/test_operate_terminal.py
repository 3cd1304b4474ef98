"""The operators' tables on a terminal of 80 columns: every line fits, however long names are."""

from __future__ import annotations

import re

import pytest

from tests.cli.conftest import Wf
from tests.cli.scene import Scene
from tests.cli.test_terminal import on_terminal

LONG = "a_name_that_is_as_long_as_nobody_would_ever_like_to_read_it_in_a_terminal"
TEXT = f"""
    workflow {LONG} {{
      action first_{LONG} = t.do()
      parallel {{
        action then_{LONG} = t.do() {{ retry 2 backoff 1m }}
        wait_event w on "{LONG}" {{ correlate "{LONG}" }}
      }}
    }}
"""
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


@pytest.fixture
def long_names(scene: Scene) -> Scene:
    """An instance with an attempt that failed, a wait whose event came, and a worker."""
    worker = f"worker-{LONG}.example.com:4711"
    scene.register(worker, "t", LONG, f"{LONG}_2")
    scene.begin(TEXT)
    scene.submit(worker, scene.take(worker)[0])
    scene.submit(worker, scene.take(worker)[0], -5, "a long story. " * 20)
    scene.send(LONG, LONG)
    return scene


def test_no_line_is_wider_than_the_terminal(long_names: Scene) -> None:
    for command in ("ps", "show 1", "show 1 --graph", "why 1", "logs 1", "events", "workers"):
        seen = _ESCAPE.sub("", on_terminal(*command.split(), columns=80))
        assert LONG[:6] in seen or LONG[-6:] in seen, command
        wide = [line for line in seen.splitlines() if len(line.rstrip()) > 80]
        assert wide == [], command


def test_keys_fit_a_terminal(wf: Wf, long_names: Scene) -> None:
    bound = ("--source", LONG, "--event-type", f"{LONG}.a", "--event-type", f"{LONG}.b")
    for roles in (("reader",), ("author", "operator", "reader", "event_source")):
        given = [word for role in roles for word in ("--role", role)]
        more = bound if "event_source" in roles else ()
        # The scene's clock stands years ahead.
        done = wf("key", "create", f"{LONG}_{len(roles)}", *given, *more, "--expires", "9999d")
        assert done.code == 0
    seen = _ESCAPE.sub("", on_terminal("key", "ls", "--all", columns=80))
    assert [line for line in seen.splitlines() if len(line.rstrip()) > 80] == []
    assert seen.count("live") == 2


def test_an_error_is_broken_at_blanks(wf: Wf) -> None:
    path = "/nowhere/" + "a-long-folder/" * 8 + "file.wf"
    seen = on_terminal("export-spans", "--otlp", path, "1", columns=80)
    lines = seen.splitlines()
    assert f'"{path}"' in lines[1].strip()
    assert [line for line in lines if len(line) > 80 and path not in line] == []
    assert " ".join(seen.split()).startswith(f'error: --otlp: "{path}" is not the URL of a')
