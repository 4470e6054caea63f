// Tables of a streaming permutation network (rtl/spn.sv) for a permutation of a frame: out word o
// is word p[o].
//
// Word p[o] comes in beat p[o] / C and leaves in beat o / C; the memory that holds it must differ
// from those of all other words of either beat. That is a colouring of the edges of a bipartite
// graph of T + T beats, each of C edges, by C colours, which exists by Koenig's theorem. Here it is
// found by halves: the edges of an Euler circuit, taken in turns, are two graphs of C/2 edges a
// beat.
#pragma once

#include <cstddef>
#include <vector>

#include "benes.h"

namespace rtl {

struct Edge {
  std::size_t from, to, word;  // beat in, beat out, and o
};

/// Gives the edges, `degree` at every beat of either side, the memories [first, first + degree).
inline void colour(std::vector<std::size_t>& memory, const std::vector<Edge>& edges,
                   std::size_t beats, std::size_t degree, std::size_t first) {
  if (degree == 1) {
    for (const Edge& edge : edges) memory[edge.word] = first;
    return;
  }
  std::vector<std::vector<std::size_t>> at(2 * beats);  // edges at the beats in, then the beats out
  for (std::size_t e = 0; e < edges.size(); ++e) {
    at[edges[e].from].push_back(e);
    at[beats + edges[e].to].push_back(e);
  }
  std::vector<bool> walked(edges.size(), false);
  std::vector<Edge> halves[2];
  for (std::size_t start = 0; start < beats; ++start) {
    // Every beat has an even number of edges that are not walked, so that a walk ends where it
    // began.
    for (std::size_t vertex = start;;) {
      while (!at[vertex].empty() && walked[at[vertex].back()]) at[vertex].pop_back();
      if (at[vertex].empty()) break;
      const std::size_t e = at[vertex].back();
      walked[e] = true;
      const bool forth = vertex < beats;
      halves[forth ? 0 : 1].push_back(edges[e]);
      vertex = forth ? beats + edges[e].to : edges[e].from;
    }
  }
  for (std::size_t h = 0; h < 2; ++h) {
    colour(memory, halves[h], beats, degree / 2, first + h * degree / 2);
  }
}

/// A row of the tables: controls of both networks, and the row that each memory gives.
struct SpnRow {
  std::uint64_t first = 0, second = 0;
  std::vector<std::size_t> rows;
};

inline std::vector<SpnRow> spn_tables(const std::vector<std::size_t>& p, std::size_t lanes) {
  const std::size_t beats = p.size() / lanes;
  std::vector<Edge> edges;
  for (std::size_t o = 0; o < p.size(); ++o) edges.push_back({p[o] / lanes, o / lanes, o});
  std::vector<std::size_t> memory(p.size());
  colour(memory, edges, beats, lanes, 0);
  std::vector<Lanes> into(beats, Lanes(lanes)), out(beats, Lanes(lanes));
  std::vector<SpnRow> tables(beats);
  for (SpnRow& row : tables) row.rows.resize(lanes);
  for (std::size_t o = 0; o < p.size(); ++o) {
    into[p[o] / lanes][memory[o]] = p[o] % lanes;
    out[o / lanes][o % lanes] = memory[o];
    tables[o / lanes].rows[memory[o]] = p[o] / lanes;
  }
  for (std::size_t t = 0; t < beats; ++t) {
    tables[t].first = benes_control(into[t]);
    tables[t].second = benes_control(out[t]);
  }
  return tables;
}

}  // namespace rtl
