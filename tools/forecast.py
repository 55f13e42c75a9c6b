"""From what a rehearsal measured, what all of the data will take on other machines."""

from __future__ import annotations

from dataclasses import dataclass

FULL = 4_500_000  # pairs of WMT18 German-English
CORES = (2, 32)

# How the work of a stage grows with the pairs; 1 where it is not listed. Learning codes looks at
# different words, whose number grows as Heaps' law has it.
_GROWTH = {"bpe.codes": 0.6}
# Learning pieces looks at so many sentences at most, of both sides.
_SAMPLE = {"spm.model": 3_000_000}
# Stages whose main process does a share of the work itself, and into how many shares for each
# process the work is divided (fairseq-preprocess's: diet_mt/corpora/preprocess.py).
_SHARES = {"bin": 4, "spm.model": 1}
APART = frozenset(_SHARES)  # in another process than the other stages


@dataclass(frozen=True)
class Stage:
    """One stage as it was measured."""

    name: str
    pairs: int
    workers: int
    seconds: float
    lines: int  # of its result
    cpu_seconds: float  # of all processes
    main_cpu_seconds: float  # of the one that reads and writes
    peak_mib: float  # of all processes together

    def serial_seconds(self) -> float:
        """What more processes would not shorten."""
        if self.name not in _SHARES:
            return self.main_cpu_seconds
        share = self.cpu_seconds / (self.workers * _SHARES[self.name])
        return max(0.0, self.main_cpu_seconds - share)

    def growth(self, pairs: int) -> float:
        """How many times the work is for so many pairs."""
        if self.name in _SAMPLE:
            limit = _SAMPLE[self.name]
            return min(2 * pairs, limit) / min(2 * self.pairs, limit)
        return float((pairs / self.pairs) ** _GROWTH.get(self.name, 1.0))

    def forecast(self, pairs: int, cores: int) -> float:
        """Seconds for so many pairs on so many cores.

        The main process works beside the others, so the longer of the two counts. What a stage
        waited for here (disks, other programs) is taken to grow as its work does, not to shrink.
        """
        here = max(self.serial_seconds(), self.cpu_seconds / self.workers)
        there = max(self.serial_seconds(), self.cpu_seconds / cores)
        waiting = max(0.0, self.seconds - here)
        return (there + waiting) * self.growth(pairs)


def clock(seconds: float) -> str:
    """``1 h 05 min``, ``12 min``, ``2 min 05 s`` or ``40 s``."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if round(seconds) < 600:
        return "{} min {:02d} s".format(*divmod(round(seconds), 60))
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min"


def table(stages: list[Stage], subwords: str) -> str:
    """Markdown: what was measured, and the forecast."""
    first = stages[0]
    ahead = [f"{FULL / 1e6:.1f}M pairs, {cores} cores (estimate)" for cores in CORES]
    heads = ["stage", f"{first.pairs:,} pairs, {first.workers} processes", "lines/s", "peak MiB"]
    lines = [
        "| " + " | ".join([*heads, *ahead]) + " |",
        "| --- |" + " ---: |" * (len(heads) + len(ahead) - 1),
    ]
    for stage in stages:
        rate = f"{2 * stage.pairs / stage.seconds:,.0f}" if stage.seconds else ""
        times = [clock(stage.forecast(FULL, cores)) for cores in CORES]
        cells = [stage.name, clock(stage.seconds), rate, f"{stage.peak_mib:,.0f}", *times]
        lines.append("| " + " | ".join(cells) + " |")
    sums = [sum(stage.forecast(FULL, cores) for stage in stages) for cores in CORES]
    total = sum(stage.seconds for stage in stages)
    peak = max(stage.peak_mib for stage in stages)
    cells = [f"all, {subwords}", clock(total), "", f"{peak:,.0f}", *map(clock, sums)]
    lines += ["| " + " | ".join(cells) + " |", ""]
    for cores in CORES:
        slowest = max(stages, key=lambda stage: stage.forecast(FULL, cores))
        lines.append(f"Longest on {cores} cores: {slowest.name}.")
    return "\n".join(lines)
