"""The gateway's tools for agents that start their tool servers as programs: lines in, lines out.

Run by file path, isolated, with the standard library only. Each line on standard input is posted
to the gateway, and what it answers is written as a line. The address and the token come in the
environment, which other people of this machine cannot see.
"""

import json
import os
import sys
import threading
from urllib.parse import urlsplit

URL, TOKEN = "LANEWAY_TOOLS_URL", "LANEWAY_TOOLS_TOKEN"
INTERNAL_ERROR = -32603


def main() -> None:
    writing = threading.Lock()
    for line in sys.stdin.buffer:
        if line.strip():
            threading.Thread(target=_pass_on, args=(line, writing), daemon=True).start()


def _pass_on(line: bytes, writing: threading.Lock) -> None:
    import http.client  # late: the gateway needs of this file its path and two names

    try:
        answer = _post(line)
    except (OSError, http.client.HTTPException) as fault:
        answer = _failed(line, f"the gateway cannot be reached: {type(fault).__name__}")
    if answer:
        with writing:
            sys.stdout.buffer.write(answer + b"\n")
            sys.stdout.buffer.flush()


def _post(line: bytes) -> bytes:
    """What the gateway answers; nothing where it was only told something."""
    import http.client

    url = urlsplit(os.environ[URL])
    connection = http.client.HTTPConnection(url.hostname or "", url.port)
    headers = {
        "Authorization": f"Bearer {os.environ[TOKEN]}",
        "Content-Type": "application/json",
        "Accept": "application/json",
    }
    try:
        connection.request("POST", url.path, line, headers)
        response = connection.getresponse()
        body = response.read()
    finally:
        connection.close()
    if response.status == 200:
        return body.replace(b"\n", b" ")
    if response.status == 202:
        return b""
    return _failed(line, body.decode(errors="replace")[:200])


def _failed(line: bytes, why: str) -> bytes:
    try:
        message = json.loads(line)
    except ValueError:
        return b""
    if not isinstance(message, dict) or "id" not in message or "method" not in message:
        return b""
    error = {"code": INTERNAL_ERROR, "message": why}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()


if __name__ == "__main__":
    main()
