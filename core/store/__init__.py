"""The store: the only place with a database connection."""
