"""What lies where in the home. Names only."""

DATABASE = "laneway.db"
APPROVALS = "approvals"  # commands that did not fit on their card
OUTGOING = "outgoing"  # files on their way to a thread
FILES = "files"  # what was sent to the page and from it

# What no agent has any business with, by name in the home. What lies in it beside these is the
# lanes' own: their workspaces, and what their agents keep.
PRIVATE = (
    f"{DATABASE}*",
    ".env*",
    "*.key",
    "*.sock",
    "*.lock",
    APPROVALS,
    OUTGOING,
    FILES,
    "incoming",
)
