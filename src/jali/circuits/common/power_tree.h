// Polynomials with the fewest levels: the method of Paterson and Stockmeyer with baby steps and
// giant steps (Bossuat, Mouchet, Troncoso-Pastoriza, Hubaux 2021, section 3). Which powers are
// made, and which sums of products of them, over coefficients of any scheme.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace jali::circuits {

enum class Basis {
  power,     // sum a_i x^i
  chebyshev  // sum a_i T_i(u), u = (2 x - a - b) / (b - a), for x in [a, b]
};

/// The levels that a polynomial of this degree takes: ceil(log2(degree + 1)). That is optimal in
/// either basis.
inline int depth_of_degree(std::size_t degree) { return static_cast<int>(std::bit_width(degree)); }

/// Powers X^i (or T_i) are products of lower powers. The polynomial is a tree of nodes
///   node = constant + sum a_i X^i + sum_j child_j X^{giant_j}
/// whose children take one level less. A node takes one relinearisation and one rescaling.
/// Number: of coefficients, with ==, +, += and -=; Number{} is zero.
template <class Number>
class PowerTree {
 public:
  struct Power {  // X^index = X^high X^low; T_index = 2 T_high T_low - T_{high - low}
    std::size_t index = 0, high = 0, low = 0;
  };
  struct Product {
    std::size_t giant = 0;
    std::size_t child = 0;  // index in nodes()
  };
  struct Node {
    int depth = 0;  // its value lies this many levels below the input
    std::vector<std::pair<std::size_t, Number>> terms;  // power, 0 for the constant
    std::vector<Product> products;
  };

  PowerTree() = default;  // of a constant, which takes nothing
  /// coefficients: the constant first. The number of baby steps is the one with the fewest products
  /// and, of several, with the fewest powers.
  PowerTree(std::vector<Number> coefficients, Basis basis) : basis_(basis) {
    trim(coefficients);
    if (coefficients.size() <= 1) return;
    std::size_t best = 1, fewest = std::numeric_limits<std::size_t>::max();
    for (std::size_t log_baby = 1; (std::size_t{1} << (log_baby - 1)) <= coefficients.size();
         ++log_baby) {
      plan(coefficients, log_baby);
      const std::size_t cost = 16 * (multiplications() + relinearisations()) + powers_.size();
      if (cost < fewest) {
        fewest = cost;
        best = log_baby;
      }
    }
    plan(coefficients, best);
  }

  const std::vector<Power>& powers() const { return powers_; }  // each after those it is made of
  const std::vector<Node>& nodes() const { return nodes_; }  // the root is the last

  std::size_t multiplications() const {  // ciphertext by ciphertext
    std::size_t total = powers_.size();
    for (const Node& node : nodes_) total += node.products.size();
    return total;
  }
  std::size_t relinearisations() const {
    std::size_t total = powers_.size();
    for (const Node& node : nodes_) total += !node.products.empty();
    return total;
  }

 private:
  using Coefficients = std::vector<Number>;

  static void trim(Coefficients& p) {
    while (p.size() > 1 && p.back() == Number{}) p.pop_back();
  }

  void plan(const Coefficients& p, std::size_t log_baby) {
    powers_.clear();
    nodes_.clear();
    build(p, depth_of_degree(p.size() - 1), log_baby);
  }

  // Adds X^index and the powers that it is made of. X^i lies ceil(log2 i) levels below X.
  void need(std::size_t index) {
    if (index <= 1) return;
    if (std::ranges::any_of(powers_, [&](const Power& p) { return p.index == index; })) return;
    const std::size_t high = std::has_single_bit(index) ? index / 2 : std::bit_floor(index);
    const std::size_t low = index - high;
    need(high);
    need(low);
    if (basis_ == Basis::chebyshev) need(high - low);
    powers_.push_back({index, high, low});
  }

  std::size_t build(Coefficients p, int depth, std::size_t log_baby) {
    Node node;
    node.depth = depth;
    collect(std::move(p), depth, log_baby, node);
    nodes_.push_back(std::move(node));
    return nodes_.size() - 1;
  }

  // Adds the terms and products of p to a node; deg p < 2^depth.
  void collect(Coefficients p, int depth, std::size_t log_baby, Node& node) {
    trim(p);
    const std::size_t degree = p.size() - 1;
    // A sum of multiples of powers lies one level below the highest power in it.
    const bool leaf = degree < (std::size_t{1} << log_baby) &&
                      (degree == 0 || depth_of_degree(degree - 1) + 1 <= depth);
    if (leaf) {
      for (std::size_t i = 0; i <= degree; ++i) {
        if (p[i] == Number{}) continue;
        need(i);
        node.terms.emplace_back(i, p[i]);
      }
      return;
    }
    // p = q X^g + r with g = 2^floor(log2 degree).
    const std::size_t g = std::bit_floor(degree);
    Coefficients q(p.begin() + static_cast<std::ptrdiff_t>(g), p.end());
    p.resize(g);
    if (basis_ == Basis::chebyshev) {
      // a T_{g+i} = 2 a T_g T_i - a T_{g-i}
      for (std::size_t i = 1; i < q.size(); ++i) {
        p[g - i] -= q[i];
        q[i] += q[i];
      }
    }
    trim(q);
    need(g);
    if (q.size() == 1) {
      node.terms.emplace_back(g, q[0]);
    } else {
      node.products.push_back({g, build(std::move(q), depth - 1, log_baby)});
    }
    collect(std::move(p), depth, log_baby, node);
  }

  Basis basis_ = Basis::power;
  std::vector<Power> powers_;
  std::vector<Node> nodes_;
};

}  // namespace jali::circuits
