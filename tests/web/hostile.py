"""Names and prompts that would do something where they are taken for markup; and a look for it."""

from __future__ import annotations

from html.parser import HTMLParser

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' autofocus onfocus='alert(1)",
    "</title></textarea></option><iframe src=javascript:alert(1)>",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "\u202egnp.\u2066exe",
    "&lt;b&gt;&amp;",
)


class Look(HTMLParser):
    """What a page is made of."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag in ("iframe", "object", "embed", "base", "style"):
            self.faults.append(tag)
        if tag == "script" and not (named.get("src") or "").startswith("/static/"):
            self.faults.append("script")
        for name, value in attrs:
            if name.startswith("on") or name in ("style", "autofocus"):
                self.faults.append(f"{tag} {name}")
            if name in ("href", "src", "action") and not (value or "").startswith(("/", "#", "?")):
                self.faults.append(f"{tag} {name}={value}")

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def looked(html: str) -> Look:
    """A page taken apart; what may not be in one stands in ``faults``."""
    found = Look()
    found.feed(html)
    return found
