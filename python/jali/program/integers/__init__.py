"""The client of a compiled program of exact integers, which knows no compiler: manifest, messages
and keys.

Users find these classes in jali.nn.integers.
"""
