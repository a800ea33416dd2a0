"""The floor: the least program that does the same durable work, to know what a figure is worth.

Poll, one commit of message and turn, answer, send: no lanes, no previews, no second chat kept
apart, nothing that a crash leaves repaired. Run as a child process by the bench.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import time

import aiohttp


async def main(url: str, token: str, path: str) -> None:
    database = sqlite3.connect(path, isolation_level=None)
    database.executescript(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
        "CREATE TABLE IF NOT EXISTS messages (identity TEXT PRIMARY KEY, text TEXT) STRICT;"
        "CREATE TABLE IF NOT EXISTS turns (id INTEGER PRIMARY KEY, answer TEXT, at REAL) STRICT;"
    )
    offset = 0
    async with aiohttp.ClientSession(f"{url}/bot{token}/") as http:
        while True:
            asked = {"offset": offset, "timeout": 30}
            async with http.post("getUpdates", json=asked) as answer:
                updates = (await answer.json())["result"]
            prompted = time.monotonic()
            database.execute("BEGIN IMMEDIATE")
            for update in updates:
                said = update["message"]
                identity = f"{said['chat']['id']}:{said['message_id']}"
                database.execute("INSERT INTO messages VALUES (?, ?)", (identity, said["text"]))
                database.execute("INSERT INTO turns (answer, at) VALUES (?, ?)", ("", prompted))
                offset = update["update_id"] + 1
            database.execute("COMMIT")
            for update in updates:
                said = update["message"]
                text = f"answer to {said['text']}"
                body = {"chat_id": said["chat"]["id"], "text": text}
                async with http.post("sendMessage", json=body) as sent:
                    await sent.read()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
