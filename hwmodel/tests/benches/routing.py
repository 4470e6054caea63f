"""Control words of Benes networks, and tables of streaming permutation networks, for any permutation.

A permutation is a list: output place o takes the input place permutation[o].
"""

from __future__ import annotations

from collections.abc import Sequence


def columns(permutation: Sequence[int]) -> list[list[int]]:
    """The switches of each column of a Benes network (rtl/benes.sv), by the looping algorithm (Opferman and Tsao-Wu
    1971): of two lanes that share a switch, one goes to the upper subnetwork and one to the lower, at both ends."""
    n, half = len(permutation), len(permutation) // 2
    if n == 2:
        return [[int(permutation[0] == 1)]]
    inverse = [permutation.index(i) for i in range(n)]
    lower: list[int | None] = [None] * n  # by output lane: which subnetwork brings it
    for start in range(half):
        out = start
        while lower[out] is None:
            lower[out], partner = 0, out ^ half
            lower[partner] = 1
            out = inverse[
                permutation[partner] ^ half
            ]  # shares the input switch, so it goes the other way
    first = [lower[inverse[i]] or 0 for i in range(half)]
    last = [lower[o] or 0 for o in range(half)]
    inner = [[0] * half, [0] * half]
    for o in range(n):
        inner[lower[o] or 0][o % half] = permutation[o] % half
    upper, under = columns(inner[0]), columns(inner[1])
    return [first, *(a + b for a, b in zip(upper, under, strict=True)), last]


def control(permutation: Sequence[int]) -> int:
    """The control word of a Benes network for a permutation of its lanes."""
    bits = [bit for column in columns(permutation) for bit in column]
    return sum(bit << k for k, bit in enumerate(bits))


def coloured(edges: Sequence[tuple[int, int]], colours: int) -> list[int]:
    """A colour for each edge of a bipartite multigraph of that degree, so that no two at a node are equal: by exchanging
    two colours along a path (Koenig's theorem)."""
    at: dict[tuple[int, int, int], int] = {}  # (side, node, colour) -> edge
    colour = [0] * len(edges)
    for e, (u, v) in enumerate(edges):
        a = next(c for c in range(colours) if (0, u, c) not in at)
        b = next(c for c in range(colours) if (1, v, c) not in at)
        path, side, node, now = [], 1, v, a
        while (side, node, now) in at:  # a and b by turns, from v
            path.append(at[side, node, now])
            side, node = 1 - side, edges[path[-1]][1 - side]
            now = a + b - now
        for f in path:
            del at[0, edges[f][0], colour[f]], at[1, edges[f][1], colour[f]]
        for f in path:
            colour[f] = a + b - colour[f]
            at[0, edges[f][0], colour[f]] = at[1, edges[f][1], colour[f]] = f
        colour[e] = a
        at[0, u, a] = at[1, v, a] = e
    return colour


def spn_tables(permutation: Sequence[int], lanes: int) -> list[int]:
    """The rows {second, rows, first} of rtl/spn.sv for a permutation of a frame."""
    n = len(permutation)
    beats = n // lanes
    row_bits = (beats - 1).bit_length()
    bits = len(columns(range(lanes))) * lanes // 2
    edges = [(place // lanes, o // lanes) for o, place in enumerate(permutation)]
    memory = coloured(edges, lanes)
    into = [[0] * lanes for _ in range(beats)]  # by beat and memory: the input lane
    out = [[0] * lanes for _ in range(beats)]  # by beat and output lane: the memory
    rows = [[0] * lanes for _ in range(beats)]  # by beat and memory: the row
    for o, place in enumerate(permutation):
        into[place // lanes][memory[o]] = place % lanes
        out[o // lanes][o % lanes] = memory[o]
        rows[o // lanes][memory[o]] = place // lanes
    tables = []
    for t in range(beats):
        word = control(out[t])
        for lane in reversed(range(lanes)):
            word = word << row_bits | rows[t][lane]
        tables.append(word << bits | control(into[t]))
    return tables
