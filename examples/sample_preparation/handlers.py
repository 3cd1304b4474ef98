"""What the actions of sample_preparation do: small, real work on FASTQ files.

A read is four lines: `@name`, its bases, `+`, and one quality character per base. The raw reads
are drawn from a seed, so the same sample gives the same file everywhere. Handlers keep nothing
between two calls; every file is named for its content and moved into place in one step, so a call
may be repeated, or made by two workers at once, and leaves the same files.

Flow: draw -> measure -> (clip | trim -> measure)* -> pool -> digest, count -> report.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wfsql import Result, action

READS_PER_LIBRARY = 24
READ_LENGTH = 60
SHORTEST_READ = 24
FEWEST_READS = 12
ADAPTER = "AGATCGGAAGAGC"
BEST_QUALITY = 38
PHRED_OFFSET = 33  # quality 0 is the character "!"
GOOD, HAS_ADAPTER, WORN, SPENT = 0, 1, 2, 3
FILLED, EMPTY = 0, 1
ALL_PREPARED, SOME_REJECTED, NONE_PREPARED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Read:
    name: str
    bases: str
    qualities: tuple[int, ...]

    def cut(self, length: int) -> Read:
        """Returns the first `length` bases."""
        return Read(self.name, self.bases[:length], self.qualities[:length])


@action("sample.draw-reads")
def draw_reads(sample: dict[str, Any], chromosome: str, work_dir: str) -> dict[str, Any]:
    """Draws reads whose tails are the worse the more `wear` the sample has had."""
    numbers = _numbers(f"{sample['id']}/{chromosome}/{sample['seed']}")
    reads = []
    for number in range(READS_PER_LIBRARY):
        bases = "".join("ACGT"[next(numbers) % 4] for _ in range(READ_LENGTH))
        if sample["adapter"] and number % 3 == 0:
            start = READ_LENGTH - len(ADAPTER) - next(numbers) % 8
            bases = (bases[:start] + ADAPTER + bases)[:READ_LENGTH]
        qualities = tuple(
            max(2, BEST_QUALITY - sample["wear"] * place // 20 - next(numbers) % 5)
            for place in range(READ_LENGTH)
        )
        reads.append(Read(f"{sample['id']}.{chromosome}.{number}", bases, qualities))
    return {"file": _store_reads(work_dir, "raw", reads), "reads": len(reads)}


@action("library.measure")
def measure(file: str, min_quality: int, work_dir: str) -> Result:
    """Answers what has to be repaired next, `good` when nothing has, `spent` when nothing can."""
    reads = _load_reads(work_dir, file)
    lengths = [len(read.bases) for read in reads]
    base_count = sum(lengths)
    output = {
        "reads": len(reads),
        "mean_length": base_count // max(1, len(reads)),
        "mean_quality": sum(sum(read.qualities) for read in reads) // max(1, base_count),
        "adapters": sum(ADAPTER in read.bases for read in reads),
    }
    if len(reads) < FEWEST_READS:
        return Result(SPENT, output)
    if output["adapters"] > 0:
        return Result(HAS_ADAPTER, output)
    if output["mean_quality"] < min_quality:
        return Result(WORN, output)
    return Result(GOOD, output)


@action("library.clip-adapter")
def clip_adapter(file: str, work_dir: str) -> dict[str, Any]:
    """Cuts every read where the adapter begins."""
    reads = [
        read.cut(read.bases.find(ADAPTER)) if ADAPTER in read.bases else read
        for read in _load_reads(work_dir, file)
    ]
    return {"file": _store_reads(work_dir, "clipped", reads)}


@action("library.trim-tail")
def trim_tail(file: str, bases: int, work_dir: str) -> dict[str, Any]:
    """Cuts `bases` off every tail and drops the reads that become too short."""
    shorter = [read.cut(len(read.bases) - bases) for read in _load_reads(work_dir, file)]
    kept = [read for read in shorter if len(read.bases) >= SHORTEST_READ]
    return {"file": _store_reads(work_dir, "trimmed", kept)}


@action("library.discard")
def discard(file: str, work_dir: str) -> dict[str, Any]:
    """Leaves a note; the file itself stays, as other runs may share it."""
    reads = len(_load_reads(work_dir, file))
    note = f"{file}\nreads left: {reads}\n"
    return {"note": _store(work_dir, "discarded", ".txt", note)}


@action("sample.pool")
def pool(sample: str, libraries: list[dict[str, Any]], work_dir: str) -> Result:
    """Joins the libraries that passed, in the order of the chromosomes."""
    passed = [library["file"] for library in libraries if library["passed"]]
    reads = [read for file in passed for read in _load_reads(work_dir, file)]
    if not reads:
        return Result(EMPTY, {"libraries": 0})
    file = _store_reads(work_dir, f"pools/{sample}", reads)
    return Result(FILLED, {"file": file, "libraries": len(passed)})


@action("sample.amplify")
def amplify(copies: int, cycle: int) -> dict[str, Any]:
    """Doubles in the first cycle; each later one yields seven per cent less."""
    return {"copies": copies + copies * (100 - 7 * cycle) // 100}


@action("pool.digest")
def digest(file: str, work_dir: str) -> dict[str, Any]:
    """Hashes a pool."""
    return {"sha256": hashlib.sha256((_place(work_dir) / file).read_bytes()).hexdigest()}


@action("pool.count")
def count(file: str, work_dir: str) -> dict[str, Any]:
    """Counts reads and bases."""
    reads = _load_reads(work_dir, file)
    return {"reads": len(reads), "bases": sum(len(read.bases) for read in reads)}


@action("study.report")
def report(study: str, prepared: list[dict[str, Any]], work_dir: str) -> Result:
    """Writes one line per sample and the sums."""
    rejected = sum(sample["state"] != "prepared" for sample in prepared)
    reads = sum(sample["reads"] for sample in prepared)
    bases = sum(sample["bases"] for sample in prepared)
    lines = [f"study {study}"]
    lines += [
        f"{sample['sample']:<8} {sample['state']:<9} reads {sample['reads']:>4} "
        f"bases {sample['bases']:>6} copies {sample['copies']:>6}"
        for sample in prepared
    ]
    lines.append(f"together reads {reads} bases {bases} rejected {rejected}")
    file = _store(work_dir, "reports", ".txt", "\n".join(lines) + "\n")
    code = _outcome(rejected, len(prepared))
    return Result(code, {"reads": reads, "bases": bases, "rejected": rejected, "file": file})


def _outcome(rejected: int, samples: int) -> int:
    if rejected == 0:
        return ALL_PREPARED
    return NONE_PREPARED if rejected == samples else SOME_REJECTED


def _numbers(seed: str) -> Iterator[int]:
    """Endless small numbers, the same for the same seed on every machine."""
    block = hashlib.sha256(seed.encode("utf-8")).digest()
    while True:
        yield from block
        block = hashlib.sha256(block).digest()


def _store_reads(work_dir: str, folder: str, reads: list[Read]) -> str:
    lines = []
    for read in reads:
        qualities = "".join(chr(PHRED_OFFSET + quality) for quality in read.qualities)
        lines += [f"@{read.name}", read.bases, "+", qualities]
    return _store(work_dir, folder, ".fastq", "".join(f"{line}\n" for line in lines))


def _load_reads(work_dir: str, file: str) -> list[Read]:
    lines = (_place(work_dir) / file).read_text(encoding="ascii").splitlines()
    return [
        Read(
            name=lines[start].removeprefix("@"),
            bases=lines[start + 1],
            qualities=tuple(ord(character) - PHRED_OFFSET for character in lines[start + 3]),
        )
        for start in range(0, len(lines), 4)
    ]


def _store(work_dir: str, folder: str, suffix: str, text: str) -> str:
    """Writes `text` under a name made of its hash; returns the name within `work_dir`."""
    content = text.encode("utf-8")
    name = f"{folder}/{hashlib.sha256(content).hexdigest()[:24]}{suffix}"
    target = _place(work_dir) / name
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".new-")
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    os.replace(temporary, target)  # a reader sees the whole file or none
    return name


def _place(work_dir: str) -> Path:
    """A relative `work_dir` lies in WFSQL_WORK, or else in the system's folder for such files."""
    default = Path(tempfile.gettempdir()) / "wfsql-examples"
    return Path(os.environ.get("WFSQL_WORK", default)) / work_dir
