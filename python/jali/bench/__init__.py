"""Benchmarks: ``jali bench list``, ``jali bench NAME``.

Every benchmark checks its results in the same run. If a result is wrong, the benchmark raises an
error and prints no figure. The repository keeps figures under bench/results/.
"""
