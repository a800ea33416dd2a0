"""The pictures of the documentation: ``make pictures`` plays conversations and draws them.

Needs Chromium, which nothing else here does. The pages stay in build/pictures, to be looked at in
a browser, also in the dark; the pictures go to docs/images.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from docs.pictures import elsewhere, posts, scene, screens
from docs.pictures.page import page, phone

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "build" / "pictures"
IMAGES = ROOT / "docs" / "images"
CHAT = Path(__file__).with_name("chat.css")
THREADS = Path(__file__).with_name("threads.css")
WIDTH, SCALE = 720, 2
TALL = 4000  # more than any page; what is left empty below is not part of the picture
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--default-background-color=00000000",
)  # fmt: skip
_HEIGHT = re.compile(r'data-height="(\d+)"')
# The browser tells how tall the page is: a picture has the size of its window.
MEASURE = (
    "<script>document.documentElement.dataset.height ="
    " Math.ceil(document.querySelector('main').getBoundingClientRect().height)</script>\n"
)


def main() -> int:
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        sys.stderr.write("Chromium is needed; on Debian: apt install chromium\n")
        return 2
    PAGES.mkdir(parents=True, exist_ok=True)
    IMAGES.mkdir(parents=True, exist_ok=True)
    recording = asyncio.run(scene.record())
    work, club = asyncio.run(elsewhere.record())
    for name, phones, style in (
        ("conversation", [phone(one) for one in recording.topics], CHAT),
        ("approval", [phone(one) for one in recording.approval], CHAT),
        ("slack-and-discord", [posts.slack(work), posts.discord(club)], THREADS),
    ):
        written = PAGES / f"{name}.html"
        written.write_text(page(phones, style.read_text("utf-8")) + MEASURE, encoding="utf-8")
        draw(browser, written, IMAGES / f"{name}.png")
    asyncio.run(screens.take(browser, IMAGES))
    return 0


def draw(browser: str, written: Path, picture: Path) -> None:
    """A page as a picture that is exactly as tall as it."""
    found = _HEIGHT.search(_run(browser, written, TALL, "--dump-dom"))
    if found is None:
        raise SystemExit(f"{browser} did not say how tall {written} is")
    _run(browser, written, int(found[1]), f"--screenshot={picture}")


def _run(browser: str, written: Path, height: int, order: str) -> str:
    with TemporaryDirectory() as profile:
        command = (
            browser, *FLAGS, f"--user-data-dir={profile}", f"--window-size={WIDTH},{height}",
            f"--force-device-scale-factor={SCALE}", order, written.as_uri(),
        )  # fmt: skip
        return subprocess.run(
            command, check=True, timeout=120, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        ).stdout  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
