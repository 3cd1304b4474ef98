"""The diagnostic codes of test files: WF5nn. A code is never given a second meaning."""

from __future__ import annotations

from dsl.codes import Code

UNREADABLE = Code("WF501", "test file that cannot be read")
NOT_YAML = Code("WF502", "test file that is not the YAML wanted")
MISFIT = Code("WF503", "test file that does not fit its schema")
BAD_VALUE = Code("WF504", "value that has no meaning here")
DUPLICATE_CASE = Code("WF505", "case named twice")
NO_WORKFLOW = Code("WF506", "workflow that cannot be had")
UNKNOWN_NODE = Code("WF507", "node that does not exist")
WRONG_NODE = Code("WF508", "node of the wrong type")
NO_SCRIPT = Code("WF509", "action without a script")
UNUSED_SCRIPT = Code("WF510", "script never used", "warning")
EVENT_NOT_TAKEN = Code("WF511", "event that nobody waits for")
UNKNOWN_VARIABLE = Code("WF512", "variable that does not exist")
BAD_PLACEHOLDER = Code("WF513", "placeholder that finds nothing")

TEST_CODES: tuple[Code, ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, Code)
)
