"""The client of a compiled program, which knows no compiler: manifest, messages and keys.

The work is done by the library's client (src/jali/client). Users find these classes in jali.nn.
"""
