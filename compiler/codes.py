"""The compiler's diagnostic codes, in the dataclass of `dsl/codes.py`.

WF090 what is not supported yet · WF1nn structure and keys · WF2nn data · WF3nn the action catalog.
A code is never given a second meaning.
"""

from __future__ import annotations

from dsl.codes import Code

NOT_YET = Code("WF090", "not supported yet")

DUPLICATE_KEY = Code("WF101", "key used twice")
UNKNOWN_KEY = Code("WF102", "unknown key")
BAD_NAME = Code("WF103", "name not allowed")
UNKNOWN_ACTION = Code("WF104", "unknown action")
UNKNOWN_ARGUMENT = Code("WF105", "unknown argument")
MISSING_ARGUMENT = Code("WF106", "missing argument")
DUPLICATE_ARGUMENT = Code("WF107", "argument given twice")
UNKNOWN_ATTRIBUTE = Code("WF108", "unknown attribute")
BAD_ATTRIBUTE = Code("WF109", "bad value of an attribute")
DUPLICATE_CASE = Code("WF111", "case given twice")
UNKNOWN_RESULT_CODE = Code("WF112", "unknown result code")
BAD_CASE = Code("WF113", "case that cannot fit")
EMPTY_PARALLEL = Code("WF114", "parallel without branches")
STRAY_COLLECT = Code("WF115", "collect outside the top of a foreach body")
BAD_FAIL_CODE = Code("WF116", "fail without a negative literal")
TOO_DEEP = Code("WF117", "nesting past the limit")
BAD_CALL = Code("WF118", "unknown function or wrong number of arguments")
OPEN_SWITCH = Code("WF119", "switch that leaves out result codes")
EMPTY_BODY = Code("WF120", "empty body", "warning")
DUPLICATE_WORKFLOW = Code("WF121", "workflow declared twice")

UNKNOWN_VARIABLE = Code("WF201", "unknown variable")
UNKNOWN_CTX = Code("WF202", "unknown ctx path")
MISPLACED_REFERENCE = Code("WF203", "reference not allowed here")
DUPLICATE_NAME = Code("WF204", "name declared twice")
DUPLICATE_OBJECT_KEY = Code("WF205", "object key given twice")
BRANCHES_WRITE = Code("WF206", "two parallel branches write one variable")
ITERATIONS_WRITE = Code("WF207", "parallel foreach writes an outer variable")
BRANCHES_READ = Code("WF208", "parallel branch reads what another writes")
UNREACHABLE_TASK = Code("WF209", "task that cannot be read from here")
UNKNOWN_TYPE = Code("WF210", "unknown type")
TYPE_CYCLE = Code("WF211", "type that contains itself")
WRONG_TYPE = Code("WF212", "wrong type")
UNKNOWN_FIELD = Code("WF213", "unknown field")
BAD_TYPE = Code("WF214", "type that cannot be")
NOT_STORABLE = Code("WF215", "value that cannot be stored")
UNUSED_INPUT = Code("WF220", "unused input", "warning")
UNUSED_VARIABLE = Code("WF221", "unused variable", "warning")
SHADOWED = Code("WF222", "variable that shadows another", "warning")

CATALOG_UNREADABLE = Code("WF301", "catalog that cannot be read")
CATALOG_YAML = Code("WF302", "catalog that is not the YAML wanted")
CATALOG_MISFIT = Code("WF303", "catalog that does not fit its schema")
CATALOG_DUPLICATE = Code("WF304", "action described twice")
CATALOG_TYPE = Code("WF305", "bad type in a catalog")
NO_CATALOG = Code("WF306", "no action catalog")

COMPILER_CODES: tuple[Code, ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, Code)
)
