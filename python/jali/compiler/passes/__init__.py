"""Rewrites and analyses of graphs that know no slot and no parameters: one file each."""
