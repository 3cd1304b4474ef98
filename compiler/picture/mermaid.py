"""A workflow as a Mermaid flowchart.

Labels are quoted, and every character that Mermaid, Markdown or HTML could take for a sign of its
own is written as an entity.
"""

from __future__ import annotations

import re

from compiler.picture.flow import CHOICES, arrows, frame_text, head, steps, tail
from compiler.picture.model import Box, Picture

# What Mermaid draws unless it is told otherwise (`maxTextSize`, `maxEdges`).
MAX_CHARACTERS = 50_000
MAX_ARROWS = 500

_SIGNS = re.compile(r"""[^\w .,:=+/()\[\]-]""")
_CLASSES = """\
  classDef action fill:#dbeafe,stroke:#3b82f6,color:#111
  classDef wait_event fill:#fef3c7,stroke:#d97706,color:#111
  classDef fail fill:#fee2e2,stroke:#dc2626,color:#111
"""
_TOO_LARGE = f"""\
%% {{characters}} characters and {{arrows}} arrows: Mermaid draws {MAX_CHARACTERS} and {MAX_ARROWS}.
%% Where it is set up, give it a larger maxTextSize and maxEdges, or draw this as SVG or dot.
"""
_COLOURED = frozenset(("action", "wait_event", "fail"))


def render_mermaid(picture: Picture) -> str:
    """Returns a `flowchart TD`; every box is one node, in a subgraph for each box around it.

    A picture that Mermaid refuses as it comes says so in its first lines. Nothing in a picture can
    lift these limits: Mermaid takes them from the page around it only.
    """
    drawn = _body(picture)
    if not too_large(picture, drawn):
        return drawn
    return _TOO_LARGE.format(characters=len(drawn), arrows=len(arrows(picture))) + drawn


def _body(picture: Picture) -> str:
    parts = ["flowchart TD\n"]
    depth = 1
    for step in steps(picture):
        box = picture.boxes[step.number]
        if step.what == "close":
            depth -= 1
        indent = "  " * min(depth, 40)
        match step.what:
            case "open":
                label = _escaped(frame_text(box))
                parts.append(f'{indent}subgraph s{step.number}["{label}"]\n')
                depth += 1
            case "close":
                parts.append(f"{indent}end\n")
            case "tail":
                parts.append(f'{indent}{tail(picture, step.number)}((" "))\n')
            case "point":
                parts.append(f"{indent}{head(step.number)}{_point(box)}\n")
    for arrow in arrows(picture):
        line = "-.->" if arrow.back else "-->"
        label = f'|"{_escaped(arrow.label)}"|' if arrow.label else ""
        parts.append(f"  {arrow.start} {line}{label} {arrow.end}\n")
    return "".join(parts) + _CLASSES


def too_large(picture: Picture, text: str) -> bool:
    """Whether Mermaid refuses the picture with its own settings."""
    return len(text) > MAX_CHARACTERS or len(arrows(picture)) > MAX_ARROWS


def _point(box: Box) -> str:
    label = "<br/>".join(map(_escaped, box.lines))
    shape = f'{{"{label}"}}' if box.kind in CHOICES else f'["{label}"]'
    return shape + (f":::{box.kind}" if box.kind in _COLOURED else "")


def _escaped(text: str) -> str:
    return _SIGNS.sub(lambda match: f"#{ord(match.group())};", text)
