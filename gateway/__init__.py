"""The process: everything that knows all parts."""
