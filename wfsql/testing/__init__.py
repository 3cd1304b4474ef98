"""The tool behind `wf test`: cases in `*.wftest.yaml`, scripted results, any engine.

Flow: `reader` makes typed cases of a file → `workflows` compiles what they name → `driver` plays a
case on an `Engine` (`local`, `postgres`) with the results of `scripts` → `expectations` compares
what is left with what was expected → `report` says it, `coverage` counts the edges taken.
"""
