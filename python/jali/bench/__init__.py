"""Benchmarks: ``jali bench list``, ``jali bench NAME``.

Every benchmark checks its results in the same run: a figure whose result was wrong is an error, not a
line. Results are kept in the repository under bench/results/.
"""
