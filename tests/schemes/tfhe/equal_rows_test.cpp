// Random graphs with operands that are constants: ciphertexts that are equal bit for bit are never
// counted as independent.
//
// The oracle reads masks. Ciphertexts are equal up to a constant if their masks are, and then their
// errors are, too. A mask of zeros is a constant without an error. So the weights of a sum over
// different masks give its true squared norm.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "../../seeded.h"
#include "jali/base/error.h"
#include "jali/schemes/tfhe/gates.h"
#include "jali/schemes/tfhe/program.h"
#include "jali/wire/tfhe.h"
#include "world.h"

namespace jali::tfhe {
namespace {

using test::TfheShape;
using test::Values;

using Mask = std::string;

/// A client whose keys and encryptions follow from a seed.
struct SeededWorld {
  explicit SeededWorld(const TfheShape& shape)
      : params(test::insecure_params(shape)),
        client(params, 1, random::Seed{3}),
        evaluator(std::make_shared<const Evaluator>(
            std::shared_ptr<const backend::TfheOps>(backend::make_ref_tfhe(params->config())),
            client.evaluation_keys())) {}
  Ciphertext encrypt(std::uint64_t value) {
    return evaluator->bind(client.encrypt(Values{value}, params->message_modulus() - 1));
  }
  /// The mask of the only row; empty if it is 0.
  Mask mask(const Ciphertext& x) const {
    const std::size_t bytes = x.data->row_bytes() - backend::torus_bytes(x.data->torus);
    Mask out(bytes, '\0');
    std::memcpy(out.data(), x.data->data.data(), bytes);
    return out == Mask(bytes, '\0') ? Mask() : out;
  }
  /// The body of the only row in steps.
  std::uint64_t body(const Ciphertext& x) const {
    const std::size_t word = backend::torus_bytes(x.data->torus);
    std::uint64_t out = 0;
    std::memcpy(&out,
                static_cast<const std::byte*>(x.data->data.data()) + x.data->row_bytes() - word,
                word);
    return out / params->step();
  }
  Ciphertext read_back(const Ciphertext& x) const {
    return evaluator->bind(wire::tfhe_ciphertext_from_bytes(wire::to_bytes(x), params));
  }

  ParamsPtr params;
  Client client;
  std::shared_ptr<const Evaluator> evaluator;
};

/// A ciphertext, and of which ciphertexts it is a sum.
struct Node {
  Ciphertext ct;
  std::map<Mask, std::int64_t> sum;
};

double norm2(const std::map<Mask, std::int64_t>& sum) {
  double out = 0;
  for (const auto& [mask, weight] : sum) {
    if (!mask.empty()) out += static_cast<double>(weight * weight);
  }
  return out;
}

class Graph {
 public:
  Graph(SeededWorld& w, std::mt19937_64& rng) : w_(w), e_(*w.evaluator), rng_(rng) {
    for (std::uint64_t v = 0; v < 3; ++v) keep(w.encrypt(v % w.params->message_modulus()));
    const bool bits = w.params->value_modulus() == 2;
    for (std::uint64_t v = 0; v < (bits ? 2 : 4); ++v) keep(e_.clear(Values{v}));
    if (bits) gates_.emplace(w.evaluator);
    // Tables that are shifts of each other where their ends allow it, and tables of one value.
    const std::uint64_t P = w.params->value_modulus();
    for (int k = 0; k < 2; ++k) {
      Values f(P);
      for (std::uint64_t v = 0; v + 3 < P; ++v) f[v] = below(w.params->message_modulus());
      if (P == 2) f = {std::uint64_t(k), 1};
      for (std::uint64_t by = 0; by < std::min<std::uint64_t>(4, P); ++by) {
        tables_.push_back(f);
        std::rotate(f.begin(), f.end() - 1, f.end());
      }
    }
    for (const std::uint64_t v : {0, 1}) tables_.emplace_back(P, v);
  }

  void grow(int steps) {
    for (int i = 0; i < steps; ++i) {
      try {
        step();
      } catch (const RangeExceeded&) {  // too much noise, which is what is counted
      }
    }
  }

  /// What the history says of every node, and of the sum of every pair of equal ones.
  void check() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const double counted = nodes_[i].ct.history.norm2();
      EXPECT_GE(counted, norm2(nodes_[i].sum)) << "node " << i;
      exact += counted == norm2(nodes_[i].sum) ? 1 : 0;
      ++all;
      const Mask mask = w_.mask(nodes_[i].ct);
      for (std::size_t j = 0; j < i && !mask.empty(); ++j) {
        if (w_.mask(nodes_[j].ct) != mask) continue;
        ++equal;
        const History* const both[] = {&nodes_[i].ct.history, &nodes_[j].ct.history};
        const std::vector<std::uint32_t> begin{0, 2}, column{0, 1};
        const std::vector<std::int64_t> weight{1, 1};
        const double of_sum = History::joined(both).combined({begin, column, weight}).norm2();
        EXPECT_GE(of_sum, 4 * norm2(nodes_[i].sum)) << "nodes " << i << " and " << j;
      }
    }
  }

  int exact = 0, all = 0, equal = 0;

 private:
  std::uint64_t below(std::uint64_t n) { return rng_() % n; }
  const Node& any() { return nodes_[below(nodes_.size())]; }

  /// A new ciphertext: a fresh one, or a look-up.
  void keep(Ciphertext ct) {
    const Mask mask = w_.mask(ct);
    nodes_.push_back({std::move(ct), {{mask, 1}}});
  }
  void step() {
    constexpr std::int64_t kWeights[] = {1, -1, 0, 2};
    if (gates_ && below(2) == 0) return gate();
    switch (below(10)) {
      case 0: return sum(any(), kWeights[below(4)], any(), kWeights[below(3)]);
      case 1: {  // x - x, also where one of them comes from bytes
        const Node x = any(), y = below(2) ? x : Node{w_.read_back(x.ct), x.sum};
        return sum(x, 1, y, -1);
      }
      case 2: {
        const Node& x = any();
        Node copy{w_.read_back(x.ct), x.sum};
        nodes_.push_back(std::move(copy));
        return;
      }
      case 3: return together();
      case 4: return captured();
      case 5:
      case 6: return shifted();
      default: keep(e_.apply(any().ct, table()));
    }
  }
  LookUpTable table() { return {w_.params, tables_[below(tables_.size())]}; }

  void sum(const Node& a, std::int64_t v, const Node& b, std::int64_t w) {
    Linear matrix;
    matrix.add(0, v);
    matrix.add(1, w);
    matrix.end_row(static_cast<std::int64_t>(below(3)));
    const Ciphertext* const parts[] = {&a.ct, &b.ct};
    Node out{e_.linear_within(e_.concatenate(parts), matrix, w_.params->value_modulus() - 1), {}};
    for (const auto& [mask, weight] : a.sum) out.sum[mask] += v * weight;
    for (const auto& [mask, weight] : b.sum) out.sum[mask] += w * weight;
    nodes_.push_back(std::move(out));
  }
  /// A look-up of x plus a constant, in a table that is shifted by as much.
  void shifted() {
    const Node &x = nodes_[below(3)], &c = any();
    const std::uint64_t shifts = std::min<std::uint64_t>(4, w_.params->value_modulus());
    const std::uint64_t by = w_.body(c.ct);
    if (!w_.mask(c.ct).empty() || by >= shifts) return;
    const Ciphertext* const parts[] = {&x.ct, &c.ct};
    Linear matrix;
    matrix.add(0, 1);
    matrix.add(1, 1);
    matrix.end_row();
    const LookUpTable by_as_much(w_.params, tables_[below(2) * shifts + by]);
    keep(e_.apply(e_.linear_within(e_.concatenate(parts), matrix, w_.params->value_modulus() - 1),
                  by_as_much));
  }
  void together() {
    // Of two tables that lie side by side, the second result is that of a table shifted by half its
    // length.
    const std::uint64_t half = w_.params->value_modulus() / 2;
    std::vector<LookUpTable> parts;
    for (int k = 0; k < 2; ++k) {
      const Values& of = tables_[below(tables_.size())];
      parts.emplace_back(w_.params, std::span(of).first(half));
    }
    Node x = any();
    x.ct.degree[0] = static_cast<std::uint32_t>(half - 1);  // so that the tables have room
    for (Ciphertext& one : e_.apply_all(x.ct, LookUpTable::together(parts))) keep(std::move(one));
  }
  void captured() {
    const LookUpTable f = table();
    const Ciphertext plus = any().ct;
    const auto function = [&](std::span<const Ciphertext> in) {
      Linear matrix;
      matrix.add(0, 1);
      matrix.add(1, 1);
      matrix.end_row();
      const Ciphertext* const parts[] = {&in[0], &plus};
      return std::vector<Ciphertext>{e_.apply(
          e_.linear_within(e_.concatenate(parts), matrix, w_.params->value_modulus() - 1), f)};
    };
    Ciphertext example = w_.encrypt(0);
    example.degree[0] = static_cast<std::uint32_t>(w_.params->value_modulus() - 1);
    const Ciphertext* const examples[] = {&example};
    Program program(w_.evaluator, function, examples);
    Ciphertext given = any().ct;
    given.key_id = example.key_id;
    const Ciphertext* const inputs[] = {&given};
    try {
      keep(std::move(program.run(inputs)[0]));
    } catch (const InvalidArgument&) {  // the input is a sum, or shares errors with `plus`
    }
  }
  void gate() {
    Ciphertext a = any().ct, b = any().ct;
    a.degree[0] = b.degree[0] = 1;
    const auto which = static_cast<Gate>(below(10));
    keep(gates_->apply(which, a, b));
  }

  SeededWorld& w_;
  const Evaluator& e_;
  std::mt19937_64& rng_;
  std::optional<Gates> gates_;
  std::vector<Values> tables_;
  std::vector<Node> nodes_;
};

void check_graphs(const std::vector<TfheShape>& shapes, int graphs, std::mt19937_64& rng) {
  int exact = 0, all = 0, equal = 0;
  for (const TfheShape& shape : shapes) {
    SCOPED_TRACE(test::name_of(shape));
    SeededWorld w(shape);
    for (int i = 0; i < graphs; ++i) {
      Graph graph(w, rng);
      graph.grow(40);
      graph.check();
      exact += graph.exact;
      all += graph.all;
      equal += graph.equal;
    }
  }
  // Equal ciphertexts are frequent, and most nodes are counted exactly.
  EXPECT_GT(equal, static_cast<int>(shapes.size()) * graphs);
  EXPECT_GT(exact, all * 3 / 4);
}

TEST(EqualRows, NeverAddUpAsIndependentOnes) {
  JALI_SEEDED(rng);
  check_graphs(test::every_shape(), 8, rng);
}

TEST(EqualRows, OfGatesNeverAddUpAsIndependentOnes) {
  JALI_SEEDED(rng);
  check_graphs(test::every_shape(1, 0), 8, rng);
}

// The table [0, 1] of x, and [0, 0, 0, 1] of x + 2, where 2 is a constant that nobody called one.
TEST(EqualRows, AreKnownHoweverAConstantCameAbout) {
  SeededWorld w(TfheShape{});
  const Evaluator& e = *w.evaluator;
  const LookUpTable f(w.params, Values{0, 1}), shifted(w.params, Values{0, 0, 0, 1});
  const LookUpTable two(w.params, Values(16, 2)),
      plus_two(w.params, [](std::uint64_t v) { return (v + 2) % 16; });
  Ciphertext x = e.bind(w.client.encrypt(Values{1}, 1));
  const Ciphertext u = e.apply(x, f), zero = e.clear(Values{0});
  const Ciphertext x_again = w.read_back(x), u_again = w.read_back(u);
  const Ciphertext clear_two = e.clear(Values{2});
  const auto difference = [&](const Ciphertext& a, const Ciphertext& b) {
    Linear matrix;
    matrix.add(0, 1);
    matrix.add(1, -1);
    matrix.end_row();
    const Ciphertext* const parts[] = {&a, &b};
    return e.linear_within(e.concatenate(parts), matrix, 0);
  };
  const std::pair<const char*, Ciphertext> constants[] = {
      {"a look-up of a constant", e.apply(zero, two)},
      {"a look-up of a look-up",
       e.apply(e.apply(zero, two), LookUpTable(w.params, Values{1, 1, 2}))},
      {"a look-up of x times 0", e.apply(e.scale(x, 0), two)},
      {"bytes of a constant", w.read_back(clear_two)},
      {"bytes of a look-up of a constant", w.read_back(e.apply(zero, two))},
      {"a look-up of x - x", e.apply(difference(x, x), plus_two)},
      {"a look-up of x - x from bytes", e.apply(difference(x, x_again), plus_two)},
      {"a look-up of u - u from bytes", e.apply(difference(u, u_again), plus_two)},
      {"a look-up of u - u computed twice", e.apply(difference(u, e.apply(x, f)), plus_two)},
      {"bytes of it", w.read_back(e.apply(difference(u, e.apply(x, f)), plus_two))},
      {"u - u computed twice, and 2", e.add_clear(difference(u, e.apply(x, f)), 2)},
      {"one of several functions",
       e.apply_all(zero, LookUpTable::together(std::vector<LookUpTable>{
                             {w.params, Values{1}}, {w.params, Values{2}}}))[1]},
      {"one of interleaved functions",
       e.apply_all(zero, LookUpTable::together(std::vector<LookUpTable>{
                             {w.params, Values(16, 1)}, {w.params, Values(16, 2)}}))[1]},
  };
  for (const auto& [name, constant] : constants) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(w.mask(constant).empty());
    const Ciphertext v = e.apply(e.add(x, constant), shifted);
    ASSERT_EQ(w.mask(v), w.mask(u));
    EXPECT_EQ(e.add(u, v).history.norm2(), 4);
    EXPECT_EQ(e.add(u, w.read_back(v)).history.norm2(), 4);
    const Ciphertext other = e.apply(e.add(x, constant), LookUpTable(w.params, Values{0, 0, 0, 2}));
    EXPECT_EQ(e.add(u, other).history.norm2(), 2);
  }
}

}  // namespace
}  // namespace jali::tfhe
