"""The noise of every array and of every number of a program."""
