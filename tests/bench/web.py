"""What the page costs: how quickly it answers, and what it and its open streams take."""

from __future__ import annotations

import asyncio
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import psutil

from tests.bench.house import PYTHON, quantile, show
from tests.end_to_end.house import ROOT
from tests.web.site import Page

MIB = 1024 * 1024
TIMES, STREAMS = 100, 200
PAGES = ("/signin", "/healthz", "/chat", "/lanes", "/jobs", "/usage", "/settings", "/metrics")


async def pages() -> None:
    """Each page as an admin (who signs in: nobody) gets it, from the request to its last byte."""
    with tempfile.TemporaryDirectory() as folder:
        async with Page(Path(folder)) as page:
            ana, nobody = await page.signed_in("ana@example.org"), page.browser()
            for path in PAGES:
                browser = nobody if path == "/signin" else ana
                await browser.get(path)  # templates and libraries are loaded by the first
                took = []
                for _ in range(TIMES):
                    began = time.perf_counter()
                    answer = await browser.get(path)
                    took.append(time.perf_counter() - began)
                middle, worst = quantile(took, 0.5) * 1000, quantile(took, 0.99) * 1000
                figure = f"{middle:.1f} ms, p99 {worst:.1f} ms"
                size = len(answer.content) / 1000
                show(f"GET {path} ({size:.1f} kB)", figure, "p50 < 50 ms", middle < 50)


async def open_streams() -> None:
    """Pages that stay open, of several people, and what a request costs beside them."""
    me = psutil.Process()
    with tempfile.TemporaryDirectory() as folder:
        async with Page(Path(folder)) as page, AsyncExitStack() as stack:
            people = [await page.signed_in(f"p{n}@members.example.org") for n in range(20)]
            for one in people:
                await one.get("/chat")
            before = me.memory_info().rss
            limits = httpx.Limits(max_connections=None)
            for number in range(STREAMS):
                cookies = people[number % len(people)].cookies
                client = httpx.AsyncClient(
                    base_url=page.url, cookies=cookies, limits=limits, trust_env=False, timeout=60
                )
                await stack.enter_async_context(client)
                answer = await stack.enter_async_context(client.stream("GET", "/api/events"))
                assert answer.status_code == 200
            await asyncio.sleep(1)
            each = (me.memory_info().rss - before) / STREAMS / 1024
            show(f"{page.site.hub.open_streams} open streams, each with its client",
                 f"{each:.0f} kB", "", None)  # fmt: skip
            used = me.cpu_times()
            await asyncio.sleep(5)
            now = me.cpu_times()
            share = (now.user + now.system - used.user - used.system) / 5 * 100
            show("processor while they are silent", f"{share:.1f} %", "< 5 %", share < 5)


async def page_memory() -> None:
    """What the page adds to a gateway that serves nobody, and metrics to one that is asked."""
    figures = []
    code = (
        "import psutil, importlib\n"
        "for name in ('gateway.app', 'gateway.web.app', 'gateway.metrics'):\n"
        "    importlib.import_module(name)\n"
        "    print(psutil.Process().memory_info().rss)\n"
    )
    for _ in range(3):
        child = await asyncio.create_subprocess_exec(
            PYTHON, "-c", code, cwd=ROOT, stdout=asyncio.subprocess.PIPE
        )
        told, _ = await child.communicate()
        base, with_page, with_metrics = (int(line) / MIB for line in told.split())
        figures.append((with_page - base, with_metrics - with_page))
    for name, sizes in zip(
        ("the page", "metrics, once asked"), zip(*figures, strict=True), strict=True
    ):
        show(f"memory that {name} takes", f"{quantile(list(sizes), 0.5):.1f} MiB", "", None)
