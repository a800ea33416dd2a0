"""``make bench``: every figure once, with its goal. Medians, on this machine, in one run.

Each measure is a function of this package that prints its lines; ``python -m tests.bench NAME``
runs only those whose name contains NAME.
"""

from __future__ import annotations

import asyncio
import platform
import sys

from tests.bench import accepts, engines, flow, footprint, jobs, latency, platforms, web
from tests.bench.house import machine

MEASURES = (
    accepts.durable_accepts,
    latency.message_to_answer,
    latency.long_answer,
    flow.many_chats_at_once,
    flow.many_messages,
    flow.behind_a_flood,
    footprint.start_and_memory,
    platforms.start_on_each_platform,
    footprint.idle_cpu,
    footprint.known_lanes,
    jobs.many_jobs,
    jobs.job_accuracy,
    jobs.year_of_jobs,
    web.pages,
    web.open_streams,
    web.page_memory,
    engines.engine_programs,
)


def main() -> None:
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    print(f"{machine()}, Python {platform.python_version()}")
    for measure in MEASURES:
        if wanted in measure.__name__:
            asyncio.run(measure())


if __name__ == "__main__":
    main()
