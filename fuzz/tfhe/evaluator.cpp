// tfhe::Evaluator: sums and look-ups; and gates.
#include <algorithm>
#include <utility>

#include "run.h"

namespace jali::fuzz {

namespace {

std::vector<const tfhe::Ciphertext*> several(TfheRun& r, std::vector<const Known*>& chosen) {
  std::vector<const tfhe::Ciphertext*> out;
  for (std::size_t k = r.in.below(4); k > 0; --k) {
    chosen.push_back(&r.any());
    out.push_back(&chosen.back()->x);
  }
  return out;
}

/// The values of all, one after the other.
std::optional<Values> joined(const std::vector<const Known*>& all) {
  Values out;
  for (const Known* one : all) {
    if (!one->values) return std::nullopt;
    out.insert(out.end(), one->values->begin(), one->values->end());
  }
  return out;
}

/// What a table that was accepted makes of values. Of values that it lacks, one may not have been
/// accepted.
std::optional<Values> looked_up(const Known& a, std::span<const std::uint64_t> values) {
  return each(a, [&](std::uint64_t v) {
    if (v >= values.size()) stop("a value was looked up that the table does not have");
    return values[v];
  });
}

/// Clear numbers: one, or most often as many as a vector has.
Known numbers(TfheRun& r, const Known& of) {
  Values out(r.in.once_in(2) ? 1 : r.in.once_in(4) ? r.in.below(4) : of.x.size());
  for (auto& x : out) x = r.number();
  return {{}, std::move(out)};
}

std::int64_t weight(TfheRun& r) {
  return r.in.once_in(12) ? r.in.integer() : static_cast<std::int64_t>(r.in.below(6)) - 1;
}

/// A matrix of a few entries, and what it makes of these values; negative results must be refused.
tfhe::Linear matrix(TfheRun& r, std::size_t columns, const std::optional<Values>& in,
                    std::optional<Values>& out) {
  tfhe::Linear m;
  if (in) out.emplace();
  for (std::size_t rows = r.in.below(4); rows > 0; --rows) {
    std::int64_t sum = 0;
    for (std::size_t k = r.in.below(4); k > 0; --k) {
      const auto column = static_cast<std::uint32_t>(r.index(columns));
      const std::int64_t w = weight(r);
      m.add(column, w);
      if (in && column < in->size()) {
        sum += w * static_cast<std::int64_t>((*in)[column]);
      }
    }
    const std::int64_t plus = weight(r);
    m.end_row(plus);
    if (out) out->push_back(static_cast<std::uint64_t>(sum + plus));
  }
  if (r.in.once_in(16) && !m.begin.empty()) m.begin.back() = static_cast<std::uint32_t>(r.number());
  return m;
}

constexpr TfheOperation kOperations[] = {
    {"bind and host_copy",
     [](TfheRun& r) {
       const Known& a = r.any();
       r.keep(r.ev().host_copy(r.ev().copy(r.ev().bind(a.x))), a.values);
     }},
    {"clear",
     [](TfheRun& r) {
       Values values(r.in.below(5));
       for (auto& v : values) v = r.number();
       r.keep(r.ev().clear(values), values);
     }},
    {"linear",
     [](TfheRun& r) {
       std::vector<const Known*> chosen;
       const auto inputs = several(r, chosen);
       const auto in = joined(chosen);
       std::size_t columns = 0;
       for (const auto* x : inputs) columns += x->size();
       std::optional<Values> out;
       const tfhe::Linear m = matrix(r, columns, in, out);
       r.keep(r.ev().linear(inputs, m), out);
     }},
    {"linear_within",
     [](TfheRun& r) {
       const Known& a = r.any();
       std::optional<Values> out;
       const tfhe::Linear m = matrix(r, a.x.size(), a.values, out);
       const std::uint64_t largest = r.in.below(20);
       // Of a promise that is broken nothing is known, not even that decryption accepts it.
       const bool kept = out && std::ranges::all_of(*out, [&](auto v) { return v <= largest; });
       auto sums = r.ev().linear_within(a.x, m, largest);
       if (kept) r.keep(std::move(sums), out);
     }},
    {"add",
     [](TfheRun& r) {
       const Known &a = r.any(), &b = r.any();
       r.keep(r.ev().add(a.x, b.x), each(a, b, std::plus<>()));
     }},
    {"subtract",
     [](TfheRun& r) {
       const Known &a = r.any(), &b = r.any();
       r.keep(r.ev().subtract(a.x, b.x), each(a, b, std::minus<>()), r.params().message_modulus());
     }},
    {"negate",
     [](TfheRun& r) {
       const Known& a = r.any();
       r.keep(r.ev().negate(a.x), each(a, std::negate<>()), r.params().message_modulus());
     }},
    {"scale",
     [](TfheRun& r) {
       const Known& a = r.any();
       const Known factors = numbers(r, a);
       r.keep(factors.values->size() == 1 && r.in.once_in(2)
                  ? r.ev().scale(a.x, factors.values->front())
                  : r.ev().scale(a.x, *factors.values),
              each(a, factors, std::multiplies<>()));
     }},
    {"add_clear",
     [](TfheRun& r) {
       const Known& a = r.any();
       const Known plus = numbers(r, a);
       r.keep(plus.values->size() == 1 && r.in.once_in(2)
                  ? r.ev().add_clear(a.x, plus.values->front())
                  : r.ev().add_clear(a.x, *plus.values),
              each(a, plus, std::plus<>()));
     }},
    {"gather",
     [](TfheRun& r) {
       const Known& a = r.any();
       std::vector<std::uint32_t> indices;
       std::optional<Values> expected;
       if (a.values) expected.emplace();
       for (std::size_t k = r.in.below(6); k > 0; --k) {
         indices.push_back(static_cast<std::uint32_t>(r.index(a.x.size())));
         if (expected && indices.back() < a.values->size()) {
           expected->push_back((*a.values)[indices.back()]);
         }
       }
       r.keep(r.ev().gather(a.x, indices), expected);
     }},
    {"concatenate",
     [](TfheRun& r) {
       std::vector<const Known*> chosen;
       const auto parts = several(r, chosen);
       r.keep(r.ev().concatenate(parts), joined(chosen));
     }},
    {"apply",
     [](TfheRun& r) {
       const Known& a = r.any();
       const tfhe::LookUpTable table = r.table();
       tfhe::Ciphertext out =
           r.in.once_in(2) ? r.ev().apply(a.x, r.ev().bind(table)) : r.ev().apply(a.x, table);
       r.keep(std::move(out), looked_up(a, table.values()));
     }},
    {"apply several tables",
     [](TfheRun& r) {
       const Known& a = r.any();
       std::vector<tfhe::LookUpTable> tables;
       for (std::size_t k = r.in.below(4); k > 0; --k) tables.push_back(r.table());
       std::vector<std::uint32_t> which;
       for (std::size_t i = r.in.once_in(8) ? r.in.below(9) : a.x.size(); i > 0; --i) {
         which.push_back(static_cast<std::uint32_t>(r.index(tables.size())));
       }
       tfhe::Ciphertext out = r.ev().apply(a.x, r.ev().bind(tables), which);
       std::optional<Values> expected;
       if (a.values) {
         expected.emplace();
         for (std::size_t i = 0; i < which.size(); ++i) {
           expected->push_back(tables[which[i]].values()[(*a.values)[i]]);
         }
       }
       r.keep(std::move(out), expected);
     }},
    {"apply_all",
     [](TfheRun& r) {
       const Known& a = r.any();
       std::vector<tfhe::LookUpTable> parts;
       for (std::size_t k = std::size_t{1} << r.in.below(3); k > 0; --k) parts.push_back(r.table());
       if (r.in.once_in(8)) parts.pop_back();
       const auto together = tfhe::LookUpTable::together(parts);
       auto out = r.in.once_in(2) ? r.ev().apply_all(a.x, r.ev().bind(together))
                                  : r.ev().apply_all(a.x, together);
       if (out.size() != parts.size()) stop("there is another number of results");
       for (std::size_t j = 0; j < out.size(); ++j) {
         r.keep(std::move(out[j]), looked_up(a, parts[j].values()));
       }
     }},
    {"apply of two",
     [](TfheRun& r) {
       const Known &a = r.any(), &b = r.any();
       const std::uint64_t p = r.params().value_modulus(), u = r.in.byte(), v = r.in.byte();
       const auto f = [=](std::uint64_t x, std::uint64_t y) { return (u * x + v * y + x * y) % p; };
       const auto table = tfhe::LookUpTable::of_two(r.world.params, f);
       r.keep(r.in.once_in(2) ? r.ev().apply(a.x, b.x, r.ev().bind(table))
                              : r.ev().apply(a.x, b.x, table),
              each(a, b, f));
     }},
    {"refresh",
     [](TfheRun& r) {
       const Known& a = r.any();
       const std::uint64_t modulus = r.params().message_modulus();
       r.keep(r.ev().refresh(a.x), each(a, [&](auto v) { return v % modulus; }));
     }},
    {"gate",
     [](TfheRun& r) {
       if (!r.world.gates) return;
       const Known &a = r.any(), &b = r.any();
       using tfhe::Gate;
       struct Named {
         Gate gate;
         std::uint64_t (*f)(std::uint64_t, std::uint64_t);
       };
       using u64 = std::uint64_t;
       constexpr Named kGates[] = {{Gate::and_gate, [](u64 x, u64 y) { return x & y; }},
                                   {Gate::nand_gate, [](u64 x, u64 y) { return 1 ^ (x & y); }},
                                   {Gate::or_gate, [](u64 x, u64 y) { return x | y; }},
                                   {Gate::nor_gate, [](u64 x, u64 y) { return 1 ^ (x | y); }},
                                   {Gate::xor_gate, [](u64 x, u64 y) { return x ^ y; }},
                                   {Gate::xnor_gate, [](u64 x, u64 y) { return 1 ^ x ^ y; }},
                                   {Gate::andny_gate, [](u64 x, u64 y) { return (1 ^ x) & y; }},
                                   {Gate::andyn_gate, [](u64 x, u64 y) { return x & (1 ^ y); }},
                                   {Gate::orny_gate, [](u64 x, u64 y) { return (1 ^ x) | y; }},
                                   {Gate::oryn_gate, [](u64 x, u64 y) { return x | (1 ^ y); }}};
       const Named& one = kGates[r.in.below(std::size(kGates))];
       r.keep(r.world.gates->apply(one.gate, a.x, b.x), each(a, b, one.f));
     }},
    {"not_gate and mux",
     [](TfheRun& r) {
       if (!r.world.gates) return;
       const Known &a = r.any(), &b = r.any(), &c = r.any();
       r.keep(r.world.gates->not_gate(a.x), each(a, [](std::uint64_t x) { return 1 ^ x; }));
       tfhe::Ciphertext out = r.world.gates->mux(a.x, b.x, c.x);
       std::optional<Values> expected;
       if (a.values && b.values && c.values) {
         expected.emplace();
         const auto at = [](const Values& v, std::size_t i) { return v[v.size() == 1 ? 0 : i]; };
         for (std::size_t i = 0; i < out.size(); ++i) {
           expected->push_back(at(at(*a.values, i) != 0 ? *b.values : *c.values, i));
         }
       }
       r.keep(std::move(out), expected);
     }},
};

}  // namespace

std::span<const TfheOperation> tfhe_evaluator_operations() { return kOperations; }

}  // namespace jali::fuzz
