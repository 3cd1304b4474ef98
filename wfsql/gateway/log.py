"""The gateway's log: one JSON object a line on stderr. Nothing secret reaches it.

Fields: at, level, event, and for a request id, method, route, path, status, ms, who (key's name or
worker's id), code. Bodies, headers and query strings are never written.
"""

from __future__ import annotations

import sys
from typing import Any, TextIO

import structlog


def new_logger(stream: TextIO | None = None, *, requests: bool = True) -> Any:
    """Returns a logger that writes to a stream; without `requests` only what went wrong."""
    import logging

    return structlog.wrap_logger(
        structlog.WriteLogger(stream or sys.stderr),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.INFO if requests else logging.WARNING
        ),
        cache_logger_on_first_use=True,
    )
