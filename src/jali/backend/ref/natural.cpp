#include "jali/backend/ref/natural.h"

#include <algorithm>
#include <bit>

#include "jali/base/error.h"

namespace jali::backend::ref {

namespace {
using u64 = std::uint64_t;
using u128 = unsigned __int128;
}  // namespace

Natural::Natural(u64 value) {
  if (value != 0) words_.push_back(value);
}

Natural Natural::from_words(std::span<const u64> words) {
  Natural r;
  r.words_.assign(words.begin(), words.end());
  r.trim();
  return r;
}

void Natural::trim() {
  while (!words_.empty() && words_.back() == 0) words_.pop_back();
}

std::size_t Natural::bits() const {
  return words_.empty() ? 0 : 64 * (words_.size() - 1) + std::bit_width(words_.back());
}

Natural& Natural::operator+=(const Natural& b) {
  words_.resize(std::max(words_.size(), b.words_.size()) + 1);
  u128 carry = 0;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    carry += static_cast<u128>(words_[i]) + b.word(i);
    words_[i] = static_cast<u64>(carry);
    carry >>= 64;
  }
  trim();
  return *this;
}

Natural& Natural::operator-=(const Natural& b) {
  require<InternalError>(*this >= b, "ref: a natural number would become negative");
  u64 borrow = 0;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    const u128 take = static_cast<u128>(b.word(i)) + borrow;
    borrow = words_[i] < take;
    words_[i] = static_cast<u64>(words_[i] - take);
  }
  trim();
  return *this;
}

Natural& Natural::operator*=(u64 b) {
  u128 carry = 0;
  for (u64& w : words_) {
    carry += static_cast<u128>(w) * b;
    w = static_cast<u64>(carry);
    carry >>= 64;
  }
  words_.push_back(static_cast<u64>(carry));
  trim();
  return *this;
}

u64 Natural::divide(u64 d) {
  u128 rest = 0;
  for (std::size_t i = words_.size(); i-- > 0;) {
    rest = (rest << 64) | words_[i];
    words_[i] = static_cast<u64>(rest / d);
    rest %= d;
  }
  trim();
  return static_cast<u64>(rest);
}

u64 Natural::operator%(u64 d) const {
  u128 rest = 0;
  for (std::size_t i = words_.size(); i-- > 0;) rest = ((rest << 64) | words_[i]) % d;
  return static_cast<u64>(rest);
}

std::strong_ordering Natural::operator<=>(const Natural& b) const {
  if (words_.size() != b.words_.size()) return words_.size() <=> b.words_.size();
  for (std::size_t i = words_.size(); i-- > 0;) {
    if (words_[i] != b.words_[i]) return words_[i] <=> b.words_[i];
  }
  return std::strong_ordering::equal;
}

}  // namespace jali::backend::ref
