"""Loads the handlers of an example and gives them a folder of their own to write to."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder below which handlers write."""
    monkeypatch.setenv("WFSQL_WORK", str(tmp_path))
    return tmp_path


@pytest.fixture
def load_handlers(work: Path) -> Callable[[str], ModuleType]:
    """Returns a function that imports `examples/NAME/handlers.py`."""

    def load(example: str) -> ModuleType:
        path = ROOT / "examples" / example / "handlers.py"
        found = importlib.util.spec_from_file_location(f"{example}_handlers_under_test", path)
        assert found is not None
        assert found.loader is not None
        module = importlib.util.module_from_spec(found)
        sys.modules[found.name] = module  # dataclasses look their module up by name
        found.loader.exec_module(module)
        return module

    return load
