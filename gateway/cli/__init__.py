"""The command line, one file a group of commands. ``table.py`` says which there are."""
