#include "jali/backend/trace/copies.h"

namespace jali::backend::trace {

void TraceMemory::copy(void* to, const void* from, std::size_t bytes) {
  Record r = blank_;
  recorder_.read(r, Kind::unknown, from, bytes);
  recorder_.write(r, Kind::unknown, to, bytes);
  recorder_.run(std::move(r), [&] { inner_->copy(to, from, bytes); });
}

void TraceMemory::copy_rows(void* to, std::size_t to_stride, const void* from,
                            std::size_t from_stride, std::size_t bytes, std::size_t rows) {
  Record r = blank_;
  // Rows that lie one after the other are one extent.
  const auto pieces = [&](std::size_t stride, auto add) {
    if (stride == bytes) return add(0, rows * bytes);
    for (std::size_t i = 0; i < rows; ++i) add(i * stride, bytes);
  };
  pieces(from_stride, [&](std::size_t at, std::size_t size) {
    recorder_.read(r, Kind::unknown, static_cast<const std::byte*>(from) + at, size);
  });
  pieces(to_stride, [&](std::size_t at, std::size_t size) {
    recorder_.write(r, Kind::unknown, static_cast<std::byte*>(to) + at, size);
  });
  recorder_.run(std::move(r),
                [&] { inner_->copy_rows(to, to_stride, from, from_stride, bytes, rows); });
}

void TraceMemory::gather(void* to, std::span<const void* const> from, std::size_t bytes,
                         std::size_t rows) {
  Record r = blank_;
  for (const void* block : from) recorder_.read(r, Kind::unknown, block, rows * bytes);
  recorder_.write(r, Kind::unknown, to, from.size() * rows * bytes);
  recorder_.run(std::move(r), [&] { inner_->gather(to, from, bytes, rows); });
}

void TraceMemory::scatter(std::span<void* const> to, const void* from, std::size_t bytes,
                          std::size_t rows) {
  Record r = blank_;
  recorder_.read(r, Kind::unknown, from, to.size() * rows * bytes);
  for (void* block : to) recorder_.write(r, Kind::unknown, block, rows * bytes);
  recorder_.run(std::move(r), [&] { inner_->scatter(to, from, bytes, rows); });
}

}  // namespace jali::backend::trace
