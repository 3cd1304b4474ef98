"""Pictures of workflows: a tree for the terminal, dot, Mermaid, SVG.

Flow: AST → `model.draw` → `Picture`, flat and ready to be shown → one of the renderers. Each
statement is one box, whatever leads to it, so every picture grows with the workflow and no faster.
"""
