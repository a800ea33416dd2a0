"""The state of the gateway in Prometheus' text format, read from its owners when somebody asks.

Loaded at the first question, like the library it is written with. Everything is a sum over all
lanes and people: no label names one of them. It must not know HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from core.lanes import Phase
from core.store.store import Store
from core.tallies import Spread
from gateway.parts import Parts

Labels = TypeVar("Labels", bound=tuple[str, ...])

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LATE = 60_000  # ms after its time an unfired job is overdue
_IN_LANES = (*(phase.value for phase in Phase), "waiting")


@dataclass(frozen=True, slots=True)
class Stored:
    """What only the store knows, at this moment."""

    lanes: int
    deliveries: Mapping[str, int]  # open ones by state
    jobs: Mapping[tuple[str, str], int]  # open ones by kind and state
    overdue: int


async def look(store: Store, now: int) -> Stored:
    """Ask the store; each question goes by an index. Raises ReadFailed while the disk fails."""
    (lanes,) = await store.fetch_now("counts.lanes")
    (overdue,) = await store.fetch_now("counts.overdue", before=now - LATE)
    deliveries = await store.fetch_now("counts.deliveries")
    jobs = await store.fetch_now("counts.jobs")
    return Stored(
        lanes["count"],
        {row["state"]: row["count"] for row in deliveries},
        {(row["kind"], row["state"]): row["count"] for row in jobs},
        overdue["count"],
    )


def exposition(parts: Parts, stored: Stored | None, ready: bool, streams: int) -> bytes:
    """All of it as text. ``stored``: None while the store cannot be read; ``streams``: of pages."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(lambda: _families(parts, stored, ready, streams)))
    ProcessCollector(namespace="laneway", registry=registry)
    return generate_latest(registry)


class _Families(Collector):
    def __init__(self, found: Callable[[], Iterable[Metric]]) -> None:
        self._found = found

    def collect(self) -> Iterable[Metric]:
        return self._found()


def _families(parts: Parts, stored: Stored | None, ready: bool, streams: int) -> Iterator[Metric]:
    yield _gauge("ready", "1 while the gateway can do its work", ready)
    yield from _turns(parts)
    if stored is not None:
        yield from _of_store(parts, stored)
    yield from _platforms(parts)
    yield from _engines(parts)
    yield _histogram("store_commit_seconds", "How long commits took", parts.store.commits)
    yield _gauge("store_troubled", "1 while nothing can be stored", bool(parts.store.trouble))
    yield _gauge("event_streams_open", "Pages that are told what happens", streams)


def _turns(parts: Parts) -> Iterator[Metric]:
    runner, counts = parts.runner, parts.runner.counts
    yield _gauge("turns_running", "Turns that take up a slot", runner.lanes.running)
    yield _gauge("turns_waiting", "Turns that wait", runner.lanes.turns_waiting)
    yield _gauge("approvals_open", "Questions nobody has answered yet", parts.approvals.waiting)
    ended = counts.ended
    yield _counter("turns", "Turns that ended", ("kind", "status", "engine"), ended)
    yield _histogram("turn_wait_seconds", "From a message to its turn's start", counts.waited)
    first = "From a turn's start to its first words"
    yield _histogram("turn_first_text_seconds", first, counts.first_text)
    yield _histogram("turn_seconds", "From a turn's start to its end", counts.lasted)
    for name, words, by_engine in (
        ("tokens_in", "Tokens that went to engines, of ended turns", counts.tokens_in),
        ("tokens_out", "Tokens that came from engines, of ended turns", counts.tokens_out),
        ("cost_usd", "US dollars of ended turns, where that is known", counts.cost),
    ):
        yield _counter(name, words, ("engine",), {(key,): n for key, n in by_engine.items()})


def _of_store(parts: Parts, stored: Stored) -> Iterator[Metric]:
    phases = parts.runner.lanes.phases()
    lanes = {(state,): phases[state] for state in _IN_LANES}
    lanes["idle",] = max(0, stored.lanes - sum(lanes.values()))
    yield _gauges("lanes", "Lanes by what they are at", ("state",), lanes)
    open_ones = {(state,): n for state, n in stored.deliveries.items()}
    yield _gauges("deliveries_open", "What is still to be sent", ("state",), open_ones)
    yield _gauges("jobs", "Schedules and watches", ("kind", "state"), stored.jobs)
    yield _gauge("jobs_overdue", "Jobs whose time was over a minute ago", stored.overdue)


def _platforms(parts: Parts) -> Iterator[Metric]:
    names = ("channel",)
    connected = {(name,): float(c.up) for name, c in parts.intake.connections.items()}
    yield _gauges("channel_connected", "1 while a platform is connected", names, connected)
    taken = {(name,): n for name, n in parts.runner.messages.items()}
    yield _counter("messages", "Messages that were taken", names, taken)
    settled = {(name, state.value): n for (name, state), n in parts.outbox.settled.items()}
    words = "Deliveries by how they ended"
    yield _counter("deliveries", words, ("channel", "state"), settled)
    calls = {(name, call.lower()): n for (name, call), n in parts.outbox.calls_made.items()}
    words = "Calls to platforms; edits are call=revise"
    yield _counter("platform_calls", words, ("channel", "call"), calls)
    penalties = {(name,): n for name, n in parts.outbox.penalties().items()}
    words = "How often a platform told us to wait"
    yield _counter("rate_limit_penalties", words, names, penalties)
    fates = {(fate.name.lower(),): n for fate, n in parts.jobs.fates.items()}
    words = "Instants at which jobs were due, by what became of them"
    yield _counter("jobs_due", words, ("fate",), fates)


def _engines(parts: Parts) -> Iterator[Metric]:
    pauses, acting = parts.runner.lanes.engine_pauses, parts.runner.acting
    up = {(name,): float(acting(name) == name) for name in parts.engines}
    yield _gauges("engine_up", "0 while another stands in for an engine", ("engine",), up)
    paused = {(name,): float(name in pauses) for name in parts.engines}
    yield _gauges("engine_paused", "1 while an engine starts nothing", ("engine",), paused)


def _gauge(name: str, words: str, value: float) -> Metric:
    return GaugeMetricFamily(f"laneway_{name}", words, value=float(value))


def _gauges(
    name: str, words: str, labels: tuple[str, ...], values: Mapping[Labels, float]
) -> Metric:
    family = GaugeMetricFamily(f"laneway_{name}", words, labels=labels)
    for key, value in sorted(values.items()):
        family.add_metric(key, float(value))
    return family


def _counter(
    name: str, words: str, labels: tuple[str, ...], values: Mapping[Labels, float]
) -> Metric:
    family = CounterMetricFamily(f"laneway_{name}", words, labels=labels)
    for key, value in sorted(values.items()):
        family.add_metric(key, float(value))
    return family


def _histogram(name: str, words: str, spread: Spread) -> Metric:
    bounds = [*map(str, spread.bounds), "+Inf"]
    buckets = [(name, float(n)) for name, (_, n) in zip(bounds, spread.steps(), strict=True)]
    return HistogramMetricFamily(f"laneway_{name}", words, buckets=buckets, sum_value=spread.sum)
