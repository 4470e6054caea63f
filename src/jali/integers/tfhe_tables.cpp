#include "jali/integers/tfhe_tables.h"

#include <cstring>
#include <utility>
#include <vector>

namespace jali::integers {

namespace {

/// Of a table t in halves of a step, coefficient c is t(e) step / 2 with e = floor((c + N/2P) P/N),
/// P = 2^p: the box of entry e has N/P coefficients, shifted by half a box, so that errors to both
/// sides stay in it. The last half box belongs to entry 0 with a negative error, and has the sign
/// that X^N = -1 takes away.
template <class Word>
void append_polynomial(std::vector<std::byte>& out, std::span<const std::int16_t> table,
                       std::size_t N, std::uint64_t step) {
  std::vector<Word> words(N);
  const std::size_t P = table.size();
  for (std::size_t c = 0; c < N; ++c) {
    const std::size_t e = (c + N / (2 * P)) / (N / P);
    const auto halves = static_cast<std::uint64_t>(std::int64_t{e < P ? table[e] : -table[0]});
    words[c] = static_cast<Word>(halves * (step / 2));
  }
  const std::size_t at = out.size();
  out.resize(at + N * sizeof(Word));
  std::memcpy(out.data() + at, words.data(), N * sizeof(Word));
}

}  // namespace

TfheTables::TfheTables(tfhe::ParamsPtr params, std::size_t most)
    : params_(std::move(params)), most_(most) {}

Polynomials TfheTables::made(const backend::TfheOps& engine,
                             std::span<const std::int16_t> tables) const {
  const std::size_t size = params_->value_modulus(), N = params_->N().value;
  const std::uint64_t step = params_->step(params_->torus());
  std::vector<std::byte> words;
  for (std::size_t first = 0; first < tables.size(); first += size) {
    if (params_->torus() == tfhe::Torus::t64) {
      append_polynomial<std::uint64_t>(words, tables.subspan(first, size), N, step);
    } else {
      append_polynomial<std::uint32_t>(words, tables.subspan(first, size), N, step);
    }
  }
  Polynomials out{engine.device()->pool()->allocate(words.size()), tables.size() / size};
  engine.copy_in(out.data.data(), words.data(), words.size());
  return out;
}

std::shared_ptr<const Polynomials> TfheTables::of(const backend::TfheOps& engine,
                                                  std::span<const std::int16_t> tables) const {
  std::string key(reinterpret_cast<const char*>(tables.data()), tables.size_bytes());
  const std::lock_guard lock(mutex_);
  if (const auto at = made_.find(key); at != made_.end()) {
    if (auto polynomials = at->second.lock()) return polynomials;
  }
  auto polynomials = std::make_shared<const Polynomials>(made(engine, tables));
  const std::size_t bytes = polynomials->data.bytes();
  if (bytes_ + bytes > most_) {
    kept_.clear();
    bytes_ = 0;
    std::erase_if(made_, [](const auto& one) { return one.second.expired(); });
  }
  if (bytes <= most_) {
    kept_.push_back(polynomials);
    bytes_ += bytes;
  }
  made_.insert_or_assign(std::move(key), polynomials);
  return polynomials;
}

}  // namespace jali::integers
