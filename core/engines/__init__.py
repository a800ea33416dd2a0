"""Engines: what runs a turn. The port is base.py; each other file drives one kind of agent."""
