"""Every check of a workflow, in order. Each takes the model and yields diagnostics."""

from __future__ import annotations

from compiler.checks import (
    actions,
    attributes,
    dataflow,
    events,
    flow,
    references,
    storable,
    structure,
    support,
    times,
    types,
)
from compiler.checks.finding import Check

CHECKS: tuple[Check, ...] = (
    structure.check_duplicate_keys,
    structure.check_names,
    structure.check_clashes,
    structure.check_bodies,
    structure.check_stray_collects,
    structure.check_fail_codes,
    structure.check_nesting,
    attributes.check_attributes,
    support.check_supported,
    actions.check_unknown_action,
    actions.check_arguments,
    actions.check_cases,
    actions.check_case_types,
    references.check_variables,
    references.check_ctx,
    references.check_bare_keys,
    references.check_places,
    references.check_fields,
    references.check_calls,
    storable.check_values_can_be_stored,
    storable.check_event_types,
    events.check_subscriptions,
    types.check_type_names,
    types.check_values,
    types.check_operands,
    dataflow.check_parallel_writes,
    flow.check_flow,
    flow.check_whiles,
    times.check_timeouts,
    times.check_waits,
    dataflow.check_unused,
    dataflow.check_shadowing,
)
