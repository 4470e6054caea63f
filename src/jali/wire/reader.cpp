#include "jali/wire/reader.h"

#include <algorithm>
#include <cmath>

#include "jali/base/checked.h"
#include "jali/base/error.h"

namespace jali::wire {

std::string Reader::cannot_read(const std::string& why) const {
  return std::string("cannot read a ") + object_name(kind_.object) + ": " + why;
}

void Reader::fail(const std::string& why) const { throw CorruptData(cannot_read(why)); }

void Reader::fail_without_advice(const Error& error) const {
  const std::string sentence = error.what();
  fail(sentence.substr(0, sentence.find(": ")));
}

void Reader::check(bool condition, const char* why) const {
  if (!condition) [[unlikely]]
    fail(why);
}

std::span<const std::uint8_t> Reader::raw(std::uint64_t count) {
  if (count > remaining()) [[unlikely]] {
    fail("it needs " + std::to_string(count) + " more bytes, " + std::to_string(remaining()) +
         " are left");
  }
  // A stream may have 2^32 bytes.
  const auto size = checked_cast<std::size_t, LimitExceeded>(count);
  if (stream_ != nullptr) return stream_->next(size);
  const auto out = rest_.first(size);
  rest_ = rest_.subspan(size);
  return out;
}

void Reader::copy_to(std::span<std::uint8_t> out) {
  const auto bytes = raw(out.size());
  std::copy(bytes.begin(), bytes.end(), out.begin());
}

bool Reader::flag() {
  const std::uint8_t x = u8();
  check(x <= 1, "a yes-or-no byte is neither 0 nor 1");
  return x == 1;
}

double Reader::magnitude(const char* name) {
  const double x = f64();
  if (!std::isfinite(x) || std::signbit(x)) fail(std::string(name) + " is negative or not finite");
  return x;
}

void Reader::charge(std::uint64_t bytes) {
  require<LimitExceeded>(bytes <= memory_left_, [&] {
    return cannot_read("it would take more memory than the limit allows (" + std::to_string(bytes) +
                       " bytes more, " + std::to_string(memory_left_) +
                       " left): raise max_bytes to read it");
  });
  memory_left_ -= bytes;
}

void Reader::finish() const {
  if (remaining() > 0) fail(std::to_string(remaining()) + " bytes follow its end");
  if (stream_ != nullptr) stream_->finish();
}

}  // namespace jali::wire
