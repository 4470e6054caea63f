#include "jali/backend/tfhe_checks.h"

#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "jali/base/error.h"

namespace jali::backend {

namespace {

/// A stretch of memory that holds `count` ciphertexts or tables, and what messages call it.
struct Stretch {
  const char* name;
  const void* data;
  std::size_t bytes, count;
};

class Checks {
 public:
  explicit Checks(const char* operation) : operation_(operation) {}

  template <class Message>
  void that(bool condition, Message&& message) const {
    if (!condition) [[unlikely]]
      fail(message());
  }
  void that(bool condition, const char* message) const {
    if (!condition) [[unlikely]]
      fail(message);
  }

  void data(const char* name, const void* data, std::size_t alignment) const {
    that(data != nullptr, [&] { return std::string(name) + " has no data"; });
    that(reinterpret_cast<std::uintptr_t>(data) % alignment == 0,
         [&] { return std::string(name) + " is not aligned to its words"; });
  }
  void key(const char* name, const void* key) const {
    that(key != nullptr, [&] { return std::string(name) + " is missing"; });
  }

  Stretch lwe(const char* name, ConstLweView x) const {
    that(x.torus == Torus::t32 || x.torus == Torus::t64,
         [&] { return std::string(name) + " must have words of 32 or 64 bits"; });
    data(name, x.data, torus_bytes(x.torus));
    that(x.count >= 1, [&] { return std::string(name) + " has no ciphertext"; });
    const std::size_t row = (x.dimension.value + 1) * torus_bytes(x.torus);
    that(x.dimension.value <= kMost && x.count <= kMost / row,
         [&] { return std::string(name) + " is larger than any memory"; });
    return {name, x.data, x.count * row, x.count};
  }
  Stretch small(const TfheConfig& config, const char* name, ConstLweView x) const {
    const Stretch block = lwe(name, x);
    shape(name, "small", x, Torus::t32, config.n);
    return block;
  }
  Stretch large(const TfheConfig& config, const char* name, ConstLweView x) const {
    const Stretch block = lwe(name, x);
    shape(name, "large", x, config.torus, config.large());
    return block;
  }
  Stretch glwe(const TfheConfig& config, const char* name, ConstGlweView x) const {
    data(name, x.data, torus_bytes(config.torus));
    that(x.count >= 1, [&] { return std::string(name) + " has no ciphertext"; });
    const std::size_t each = glwe_bytes(config);
    that(x.count <= kMost / each, [&] { return std::string(name) + " is larger than any memory"; });
    return {name, x.data, x.count * each, x.count};
  }
  Stretch tables(const TfheConfig& config, const TableView& x, std::size_t inputs) const {
    that(x.count >= 1, "there is no table");
    data("the table", x.data, torus_bytes(config.torus));
    const std::size_t each =
        x.encrypted ? glwe_bytes(config) : config.N.value * torus_bytes(config.torus);
    that(x.count <= kMost / each, "the tables are larger than any memory");
    const int most = std::countr_zero(config.N.value);
    that(x.log_many >= 0 && x.log_many <= most, [&] {
      return "log_many must be from 0 to " + std::to_string(most) + ", not " +
             std::to_string(x.log_many);
    });
    that(x.of_input.empty() || x.of_input.size() == inputs, [&] {
      return "of_input must be empty or name a table for each of the " + std::to_string(inputs) +
             " inputs, not for " + std::to_string(x.of_input.size());
    });
    for (const std::uint32_t table : x.of_input) {
      that(table < x.count, [&] {
        return "of_input names table " + std::to_string(table) + ", and there are " +
               std::to_string(x.count);
      });
    }
    return {"the tables", x.data, x.count * each, x.count};
  }

  void mask(const char* what, LweDimension d) const {
    that(d.value >= 1 && d.value <= kMostMask, [&] {
      return std::string(what) + " have from 1 to " + std::to_string(kMostMask) +
             " words of a mask, not " + std::to_string(d.value);
    });
  }

  void rows(const Stretch& out, std::size_t want) const {
    that(out.count == want, [&] {
      return "the output must have " + std::to_string(want) + " rows, not " +
             std::to_string(out.count);
    });
  }
  void apart(const Stretch& out, const Stretch& in) const {
    const auto a = reinterpret_cast<std::uintptr_t>(out.data);
    const auto b = reinterpret_cast<std::uintptr_t>(in.data);
    that(a >= b + in.bytes || b >= a + out.bytes,
         [&] { return std::string(out.name) + " overlaps " + in.name; });
  }

  /// A blind rotation, of which each input gives 2^log_many rows of the output.
  void rotation(const TfheConfig& config, const Stretch& out, const Stretch& in,
                const TableView& tables, const void* rotation_key) const {
    const Stretch start = this->tables(config, tables, in.count);
    key("the bootstrapping key", rotation_key);
    rows(out, in.count << tables.log_many);
    apart(out, in);
    apart(out, start);
  }

 private:
  static constexpr std::size_t kMostMask = std::size_t{1} << 20;  // k N at most
  static constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max() / 64;

  [[noreturn]] void fail(const std::string& message) const {
    throw InvalidArgument(std::string(operation_) + ": " + message);
  }
  static std::size_t glwe_bytes(const TfheConfig& config) {
    return (config.k.value + 1) * config.N.value * torus_bytes(config.torus);
  }
  void shape(const char* name, const char* kind, ConstLweView x, Torus torus,
             LweDimension dimension) const {
    that(x.torus == torus && x.dimension == dimension, [&] {
      return std::string(name) + " must be " + kind + " ciphertexts of dimension " +
             std::to_string(dimension.value) + " with words of " +
             std::to_string(torus_bits(torus)) + " bits, not of dimension " +
             std::to_string(x.dimension.value) + " with words of " +
             std::to_string(torus_bits(x.torus)) + " bits";
    });
  }

  const char* operation_;
};

constexpr const char* kOut = "the output";
constexpr const char* kIn = "the input";
constexpr const char* kToPack = "ciphertexts to pack";

}  // namespace

void check_prepare_rotation_key(const TfheConfig& config, const void* out, const void* ggsws,
                                std::size_t first, std::size_t count) {
  const Checks check("prepare_rotation_key");
  check.key("the key to write", out);
  check.data("the key to read", ggsws, torus_bytes(config.torus));
  check.that(count >= 1 && first < config.steps() && count <= config.steps() - first, [&] {
    return "the key has " + std::to_string(config.steps()) + " steps, which do not include " +
           std::to_string(count) + " from step " + std::to_string(first) + " on";
  });
}

void check_prepare_switch_key(const void* out, const void* rows) {
  const Checks check("prepare_switch_key");
  check.key("the key to write", out);
  check.data("the key to read", rows, sizeof(std::uint32_t));
}

void check_prepare_packing_key(const TfheConfig& config, const void* out, LweDimension from,
                               const void* bodies) {
  const Checks check("prepare_packing_key");
  check.key("the key to write", out);
  check.data("the key to read", bodies, torus_bytes(config.torus));
  check.mask(kToPack, from);
}

void check_copy_in_seeded(LweView out, const void* bodies) {
  const Checks check("copy_in_seeded");
  check.lwe(kOut, out);
  check.mask("ciphertexts from a seed", out.dimension);
  check.data(kIn, bodies, torus_bytes(out.torus));
}

void check_key_switch(const TfheConfig& config, LweView out, ConstLweView in,
                      const void* switch_key) {
  const Checks check("key_switch");
  const Stretch to = check.small(config, kOut, out), from = check.large(config, kIn, in);
  check.key("the key-switching key", switch_key);
  check.rows(to, in.count);
  check.apart(to, from);
}

void check_bootstrap(const TfheConfig& config, LweView out, ConstLweView in,
                     const TableView& tables, const void* rotation_key) {
  const Checks check("bootstrap");
  const Stretch to = check.large(config, kOut, out), from = check.small(config, kIn, in);
  check.rotation(config, to, from, tables, rotation_key);
}

void check_switch_bootstrap(const TfheConfig& config, LweView out, ConstLweView in,
                            const TableView& tables, const void* switch_key,
                            const void* rotation_key) {
  const Checks check("switch_bootstrap");
  const Stretch to = check.large(config, kOut, out), from = check.large(config, kIn, in);
  check.key("the key-switching key", switch_key);
  check.rotation(config, to, from, tables, rotation_key);
}

void check_bootstrap_switch(const TfheConfig& config, LweView out, ConstLweView in,
                            const TableView& tables, const void* switch_key,
                            const void* rotation_key) {
  const Checks check("bootstrap_switch");
  const Stretch to = check.small(config, kOut, out), from = check.small(config, kIn, in);
  check.key("the key-switching key", switch_key);
  check.rotation(config, to, from, tables, rotation_key);
}

void check_blind_rotate(const TfheConfig& config, GlweView out, ConstLweView in,
                        const TableView& tables, const void* rotation_key) {
  const Checks check("blind_rotate");
  const Stretch to = check.glwe(config, kOut, out), from = check.small(config, kIn, in);
  const Stretch start = check.tables(config, tables, in.count);
  check.key("the bootstrapping key", rotation_key);
  check.rows(to, in.count);
  check.apart(to, from);
  check.apart(to, start);
}

void check_combine(LweView out, ConstLweView in, const LweCombination& combination) {
  const Checks check("combine");
  const Stretch to = check.lwe(kOut, out), from = check.lwe(kIn, in);
  check.that(out.torus == in.torus && out.dimension == in.dimension,
             "the output and the input must have one torus and one dimension");
  check.that(combination.begin.size() == out.count + 1, [&] {
    return "begin must have one entry more than the " + std::to_string(out.count) +
           " rows of the output, not " + std::to_string(combination.begin.size());
  });
  check.that(combination.column.size() == combination.weight.size(),
             "there must be as many weights as columns");
  check.that(combination.constant.empty() || combination.constant.size() == out.count,
             "there must be a constant for each row, or none");
  for (std::size_t r = 0; r < out.count; ++r) {
    check.that(combination.begin[r] <= combination.begin[r + 1], "begin must ascend");
  }
  check.that(
      combination.begin.front() == 0 && combination.begin.back() == combination.column.size(),
      "begin must go from 0 to the number of entries");
  for (const std::uint32_t column : combination.column) {
    check.that(column < in.count, [&] {
      return "column " + std::to_string(column) + " is named, and there are " +
             std::to_string(in.count) + " inputs";
    });
  }
  check.apart(to, from);
}

void check_extract(const TfheConfig& config, LweView out, ConstGlweView in,
                   std::span<const std::uint32_t> coefficients, std::size_t per) {
  const Checks check("extract");
  const Stretch to = check.large(config, kOut, out), from = check.glwe(config, kIn, in);
  check.rows(to, coefficients.size());
  check.that(per >= 1, "at least one coefficient must be read of each ciphertext");
  check.that((coefficients.size() - 1) / per < in.count, [&] {
    return "the " + std::to_string(coefficients.size()) + " coefficients need " +
           std::to_string((coefficients.size() - 1) / per + 1) + " ciphertexts, and there are " +
           std::to_string(in.count);
  });
  for (const std::uint32_t h : coefficients) {
    check.that(h < config.N.value, [&] {
      return "coefficient " + std::to_string(h) + " is asked for, and there are " +
             std::to_string(config.N.value);
    });
  }
  check.apart(to, from);
}

void check_pack(const TfheConfig& config, GlweView out, ConstLweView in,
                std::span<const std::uint32_t> coefficients, std::size_t per,
                const void* packing_key) {
  const Checks check("pack");
  const Stretch to = check.glwe(config, kOut, out), from = check.lwe(kIn, in);
  check.key("the packing key", packing_key);
  check.mask(kToPack, in.dimension);
  check.that(torus_bits(in.torus) <= torus_bits(config.torus), [&] {
    return "words of " + std::to_string(torus_bits(in.torus)) +
           " bits cannot be packed into words of " + std::to_string(torus_bits(config.torus));
  });
  check.that(coefficients.size() == in.count, [&] {
    return "there must be a coefficient for each of the " + std::to_string(in.count) +
           " ciphertexts, not " + std::to_string(coefficients.size());
  });
  check.that(per >= 1, "at least one ciphertext must be packed into each");
  check.rows(to, (in.count - 1) / per + 1);
  std::vector<std::size_t> taken(config.N.value, in.count);  // the last output that has one there
  for (std::size_t t = 0; t < in.count; ++t) {
    const std::uint32_t h = coefficients[t];
    check.that(h < config.N.value, [&] {
      return "coefficient " + std::to_string(h) + " is named, and there are " +
             std::to_string(config.N.value);
    });
    check.that(taken[h] != t / per, [&] {
      return "coefficient " + std::to_string(h) + " of one output is named twice";
    });
    taken[h] = t / per;
  }
  check.apart(to, from);
}

}  // namespace jali::backend
