"""`python -m tests.faults.report`: plays all faults, writes what was seen to docs/reliability.md.

The tables between the two marks there are replaced. `--short` plays only the short forms, and
`--print` writes nothing. Exit code 1: an instance did not end as it should; nothing is written.
"""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass

from tests.faults import breaking, workload
from tests.faults.breaking import Fault
from tests.faults.scene import ROOT, Scene
from tests.faults.workload import ACTIONS_OF_ONE, Judged

PAGE = ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- measured -->", "<!-- end of measured -->"
SHORT_FORM = (breaking.SHORT, 3, 24)
LONG_FORM = (breaking.LONG, 6, 60)


@dataclass(frozen=True, slots=True)
class Row:
    fault: Fault
    seen: str
    judged: Judged

    def text(self) -> str:
        judged = self.judged
        cells = (
            self.fault.title,
            self.seen,
            f"{judged.recovered_seconds:.1f}",
            f"{judged.pause_seconds:.1f}",
            str(judged.lost),
            str(judged.counted_twice),
            str(judged.effects_twice),
        )
        return f"| {' | '.join(cells)} |"


def play(scene: Scene, fault: Fault, count: int) -> Row:
    """Plays one fault under a workload of so many instances."""
    load = workload.start(scene, count)
    load.wait_until_under_way()
    seen = fault.make(scene, load, fault.seconds)
    return Row(fault, seen, load.finish())


def table(rows: list[Row]) -> str:
    head = (
        "| fault | what was seen | recovered, s | longest pause, s | results lost"
        " | results counted twice | effects twice |\n| --- | --- |" + " ---: |" * 5
    )
    return "\n".join([head, *(row.text() for row in rows)])


def main(arguments: list[str]) -> int:
    forms = (SHORT_FORM,) if "--short" in arguments else (SHORT_FORM, LONG_FORM)
    parts = []
    for faults, lease_seconds, count in forms:
        scene = Scene(lease_seconds)
        rows = []
        try:
            for fault in faults:
                row = play(scene, fault, count)
                print(row.text(), flush=True)
                if row.judged.wrong:
                    print("\n".join(row.judged.wrong), scene.logs(), sep="\n", file=sys.stderr)
                    return 1
                rows.append(row)
        finally:
            scene.close()
        parts.append(
            f"Leases of {lease_seconds} s, {count} instances of {ACTIONS_OF_ONE} tasks under way:"
            f"\n\n{table(rows)}"
        )
    if "--print" not in arguments:
        _write("\n\n".join([_machine(), *parts]))
    return 0


def _machine() -> str:
    load = os.getloadavg()[2]
    return (
        f"Measured with {os.cpu_count()} cores ({platform.machine()}), Python"
        f" {platform.python_version()}, a load average of {load:.0f} over the last 15 minutes."
    )


def _write(text: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
