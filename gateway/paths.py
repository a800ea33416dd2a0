"""What lies where in the home. Names only."""

DATABASE = "laneway.db"
APPROVALS = "approvals"  # commands that did not fit on their card
