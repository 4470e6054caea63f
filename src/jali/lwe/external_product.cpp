#include "jali/lwe/external_product.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "jali/base/error.h"

namespace jali::lwe {

namespace {

/// Words as LWE ciphertexts without a mask, which is how TfheOps::combine moves single words.
backend::ConstLweView words_at(const void* data, Torus torus, std::size_t count) {
  return {data, torus, LweDimension(0), count};
}

template <class Glwe>
void check_dimensions(const backend::TfheConfig& config, const Glwe& x) {
  require<ParamsMismatch>(x.torus == config.torus && x.k == config.k && x.N == config.N, [&] {
    return "the ciphertexts have k = " + std::to_string(x.k.value) +
           ", N = " + std::to_string(x.N.value) + " and words of " +
           std::to_string(backend::torus_bits(x.torus)) +
           " bits, and the engine k = " + std::to_string(config.k.value) +
           ", N = " + std::to_string(config.N.value) + " and words of " +
           std::to_string(backend::torus_bits(config.torus)) +
           " bits: use an engine of their parameters";
  });
}

void check_gadget(const backend::TfheConfig& config, const Gadget& gadget) {
  require<ParamsMismatch>(gadget == config.rotation_gadget, [&] {
    return "the GGSW ciphertext has " + std::to_string(gadget.levels) + " levels of " +
           std::to_string(gadget.base_log) + " bits, and the engine's gadget " +
           std::to_string(config.rotation_gadget.levels) + " of " +
           std::to_string(config.rotation_gadget.base_log) +
           ": use an engine of the parameters that it was encrypted with";
  });
}

void check_glwe(const backend::TfheConfig& config, const GlweBlock& x) {
  check_dimensions(config, x);
  require<InvalidArgument>(x.count >= 1 && x.data.bytes() >= x.bytes(),
                           "there is no GLWE ciphertext: encrypt one, and bind it to the engine");
}

void check_ggsw(const backend::TfheConfig& config, const GgswBlock& x, std::size_t which) {
  check_gadget(config, x.gadget);
  check_dimensions(config, x.rows);
  require<InvalidArgument>(which < x.count() && x.rows.data.bytes() >= x.rows.bytes(), [&] {
    return "there is no GGSW ciphertext " + std::to_string(which) + " among " +
           std::to_string(x.count());
  });
}

void check_seeded(const SeededGlwe& x, std::size_t ciphertexts, const char* kind) {
  const std::size_t body = x.N.value * backend::torus_bytes(x.torus);
  require<InvalidArgument>(ciphertexts >= 1 && x.bodies.bytes() / body >= x.count, [&] {
    return "there is no " + std::string(kind) +
           " ciphertext, or it holds less than it says: encrypt one";
  });
}

/// The entries of a combination, row by row.
class Rows {
 public:
  void entry(std::size_t column, std::int64_t weight) {
    column_.push_back(static_cast<std::uint32_t>(column));
    weight_.push_back(weight);
  }
  void end() { begin_.push_back(static_cast<std::uint32_t>(column_.size())); }
  backend::LweCombination view() const { return {begin_, column_, weight_, {}}; }

 private:
  std::vector<std::uint32_t> begin_{0}, column_;
  std::vector<std::int64_t> weight_;
};

/// Ciphertexts that begin at this word of an input, times a weight.
struct Term {
  std::size_t from;
  std::int64_t weight;
};

/// What `pack` takes: for each of `count` GLWE ciphertexts x, the sums of the terms, and for each t
/// the words x_c[t] of all polynomials c, then 0.
Rows transposed(const backend::TfheConfig& config, std::size_t count,
                std::initializer_list<Term> terms) {
  const std::size_t N = config.N.value, polynomials = config.k.value + 1;
  Rows out;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t t = 0; t < N; ++t) {
      for (std::size_t c = 0; c < polynomials; ++c) {
        for (const Term& term : terms) {
          out.entry(term.from + (i * polynomials + c) * N + t, term.weight);
        }
        out.end();
      }
      out.end();
    }
  }
  return out;
}

/// out = -GGSW x (the sums of the terms, which are of words in `from`).
void negative_product(const backend::TfheOps& engine, const GgswBlock& ggsw, std::size_t which,
                      backend::GlweView out, backend::ConstLweView from,
                      std::initializer_list<Term> terms) {
  const backend::TfheConfig& config = engine.config();
  const std::size_t N = config.N.value;
  LweBlock coefficients = make_lwe(*engine.device()->pool(), config.torus,
                                   LweDimension(config.k.value + 1), out.count * N);
  engine.combine({coefficients.data.data(), config.torus, LweDimension(0),
                  coefficients.count * coefficients.row_words()},
                 from, transposed(config, out.count, terms).view());
  std::vector<std::uint32_t> where(coefficients.count);
  for (std::size_t t = 0; t < where.size(); ++t) where[t] = static_cast<std::uint32_t>(t % N);
  engine.pack(out, coefficients.view(), where, N, ggsw.at(which));
}

/// work(first, number) for pieces of `count` ciphertexts, of so many words that lists of their
/// words take some megabytes.
template <class Work>
void in_pieces(const backend::TfheConfig& config, std::size_t count, const Work& work) {
  const std::size_t words = (config.k.value + 1) * config.N.value;
  const std::size_t piece = std::max<std::size_t>((std::size_t{1} << 18) / words, 1);
  for (std::size_t first = 0; first < count; first += piece) {
    work(first, std::min(piece, count - first));
  }
}

/// Ciphertexts from number `first` on.
template <class Byte, class Block>
Byte* at(Block& block, std::size_t first) {
  return static_cast<Byte*>(block.data.data()) + first * (block.bytes() / block.count);
}

GlweBlock made(const backend::TfheOps& engine, std::size_t count, const KeyId& key_id) {
  const backend::TfheConfig& config = engine.config();
  GlweBlock out = make_glwe(*engine.device()->pool(), config.torus, config.k, config.N, count);
  out.key_id = key_id;
  return out;
}

}  // namespace

GgswBlock bind(const backend::TfheOps& engine, const SeededGgsw& in) {
  const backend::TfheConfig& config = engine.config();
  check_gadget(config, in.gadget);
  check_dimensions(config, in.rows);
  check_seeded(in.rows, in.count(), "GGSW");
  GgswBlock out{in.gadget, made(engine, in.rows.count, in.rows.key_id)};
  // A packing key of so many mask words has as many rows.
  engine.prepare_seeded_packing_key(out.rows.data.data(),
                                    LweDimension(in.count() * (config.k.value + 1)),
                                    {in.rows.seed, in.rows.bodies.data()});
  return out;
}

GlweBlock bind(const backend::TfheOps& engine, const SeededGlwe& in) {
  check_dimensions(engine.config(), in);
  check_seeded(in, in.count, "GLWE");
  GlweBlock out = made(engine, in.count, in.key_id);
  const GlweBlock whole = expand(*device::Pool::create(), in);
  engine.copy_in(out.data.data(), whole.data.data(), whole.bytes());
  return out;
}

GlweBlock external_product(const backend::TfheOps& engine, const GgswBlock& ggsw, std::size_t which,
                           const GlweBlock& in) {
  const backend::TfheConfig& config = engine.config();
  check_ggsw(config, ggsw, which);
  check_glwe(config, in);
  GlweBlock out = made(engine, in.count, common_key(ggsw.rows.key_id, in.key_id));
  const std::size_t words = in.words() / in.count;
  in_pieces(config, in.count, [&](std::size_t first, std::size_t count) {
    GlweBlock negative = made(engine, count, out.key_id);
    negative_product(engine, ggsw, which, negative.view(),
                     words_at(at<const std::byte>(in, first), config.torus, count * words),
                     {{0, 1}});
    const LweDimension row(words - 1);  // whole ciphertexts are rows of as many words
    Rows signs;
    for (std::size_t i = 0; i < count; ++i) {
      signs.entry(i, -1);
      signs.end();
    }
    engine.combine({at<std::byte>(out, first), config.torus, row, count},
                   {negative.data.data(), config.torus, row, count}, signs.view());
  });
  return out;
}

GlweBlock cmux(const backend::TfheOps& engine, const GgswBlock& selector, std::size_t which,
               const GlweBlock& zero, const GlweBlock& one) {
  const backend::TfheConfig& config = engine.config();
  check_ggsw(config, selector, which);
  check_glwe(config, zero);
  check_glwe(config, one);
  require<InvalidArgument>(zero.count == one.count, [&] {
    return "a CMux selects between as many ciphertexts, not between " + std::to_string(zero.count) +
           " and " + std::to_string(one.count);
  });
  const KeyId key_id = common_key(selector.rows.key_id, common_key(zero.key_id, one.key_id));
  GlweBlock out = made(engine, zero.count, key_id);
  const std::size_t words = zero.words() / zero.count;
  in_pieces(config, zero.count, [&](std::size_t first, std::size_t count) {
    // One after the other, as `combine` reads them: zero, one, and minus their difference times the
    // bit.
    GlweBlock all = made(engine, 3 * count, key_id);
    const std::size_t bytes = all.bytes() / 3;
    engine.copies().copy(all.data.data(), at<const std::byte>(zero, first), bytes);
    engine.copies().copy(at<std::byte>(all, count), at<const std::byte>(one, first), bytes);
    negative_product(engine, selector, which, {at<std::byte>(all, 2 * count), count},
                     words_at(all.data.data(), config.torus, 2 * count * words),
                     {{count * words, 1}, {0, -1}});
    const LweDimension row(words - 1);
    Rows sums;
    for (std::size_t i = 0; i < count; ++i) {
      sums.entry(i, 1);
      sums.entry(2 * count + i, -1);
      sums.end();
    }
    engine.combine({at<std::byte>(out, first), config.torus, row, count},
                   {all.data.data(), config.torus, row, all.count}, sums.view());
  });
  return out;
}

}  // namespace jali::lwe
