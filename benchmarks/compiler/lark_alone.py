"""The floor: Lark parses the file with a grammar of just its shape, and builds a plain tree.

No name is looked up and no type is known. The tables are read from a cache, as ours are.
Run as `python lark_alone.py FILE CACHE`.
"""

import sys

from lark import Lark

GRAMMAR = r"""
start: "workflow" NAME "{" "input" "{" NAME ":" NAME "}" statement* "}"
?statement: action | condition
action: "action" NAME "=" NAME "(" NAME ":" NAME ")"
condition: "if" NAME ">" INT "{" statement* "}"
NAME: /[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)*/
INT: /[0-9]+/
%ignore /\s+/
"""

if __name__ == "__main__":
    parser = Lark(GRAMMAR, parser="lalr", cache=sys.argv[2])
    with open(sys.argv[1], encoding="utf-8") as file:
        parser.parse(file.read())
