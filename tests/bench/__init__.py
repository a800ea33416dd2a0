"""Figures for one machine: ``make bench``. Never part of the test suite."""
