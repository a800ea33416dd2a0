"""What lies where in the home. Names only."""

DATABASE = "laneway.db"
APPROVALS = "approvals"  # commands that did not fit on their card
OUTGOING = "outgoing"  # files on their way to a thread
