"""A workflow as a graph for Graphviz."""

from __future__ import annotations

from compiler.picture.flow import CHOICES, arrows, frame_text, head, steps, tail
from compiler.picture.model import Box, Picture

_HEAD = """\
digraph "{name}" {{
  node [shape=box, style="rounded,filled", fillcolor="#f5f7fa", fontname="sans-serif", fontsize=11]
  edge [fontname="sans-serif", fontsize=10]
  graph [fontname="sans-serif", fontsize=11, style=rounded, color="#8a94a3"]
"""
_COLOURS = {"action": "#dbeafe", "wait_event": "#fef3c7", "fail": "#fee2e2"}


def render_dot(picture: Picture) -> str:
    """Returns a `digraph`; every box is one node, in a cluster for each box around it."""
    parts = [_HEAD.format(name=_escaped(picture.boxes[0].name))]
    depth = 1
    for step in steps(picture):
        box = picture.boxes[step.number]
        if step.what == "close":
            depth -= 1
        indent = "  " * min(depth, 40)
        match step.what:
            case "open":
                parts.append(f"{indent}subgraph cluster_{step.number} {{\n")
                parts.append(f'{indent}  label="{_escaped(frame_text(box))}"\n')
                depth += 1
            case "close":
                parts.append(f"{indent}}}\n")
            case "tail":
                end = tail(picture, step.number)
                parts.append(f'{indent}{end} [shape=point, width=0.08, label=""]\n')
            case "point":
                parts.append(f"{indent}{head(step.number)} [{_point(box)}]\n")
    for arrow in arrows(picture):
        label = f'label="{_escaped(arrow.label)}"' if arrow.label else ""
        style = ", style=dashed, constraint=false" if arrow.back else ""
        extra = f" [{label}{style}]" if label else ""
        parts.append(f"  {arrow.start} -> {arrow.end}{extra}\n")
    return "".join(parts) + "}\n"


def _point(box: Box) -> str:
    label = "\\n".join(map(_escaped, box.lines))
    if box.kind in CHOICES:
        return f'label="{label}", shape=diamond, style=filled'
    colour = _COLOURS.get(box.kind)
    return f'label="{label}"' + (f', fillcolor="{colour}"' if colour else "")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
