// What the tests of both tracers share: copies, and the traces of vectors/traces, which the tests
// of the lowering read.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "jali/backend/trace/trace.h"

namespace jali::backend::test {

/// An engine of either kind records the copies that go through it, and makes them.
template <class TracedEngine>
void expect_copies(const TracedEngine& engine, const Trace& trace) {
  using Bytes = std::vector<std::uint8_t>;
  const Bytes from{1, 2, 3, 4, 5, 6};
  const std::size_t before = trace.size();
  const auto extents = [&](const std::vector<Extent>& all) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> out;
    for (const Extent& e : all) out.emplace_back(e.offset, e.bytes);
    return out;
  };
  const auto expect = [&](auto call, const Bytes& want, std::size_t reads, std::size_t writes) {
    const device::Buffer a = engine.device()->pool()->allocate(from.size());
    device::Buffer b = engine.device()->pool()->allocate(from.size());
    engine.copies().copy_in(const_cast<void*>(a.data()), from.data(), from.size());
    engine.copies().fill(b.data(), 0, from.size());
    call(static_cast<std::byte*>(b.data()), static_cast<const std::byte*>(a.data()));
    Bytes have(from.size());
    engine.copies().copy_out(have.data(), b.data(), have.size());
    EXPECT_EQ(have, want);
    const Record r = trace.records().back();
    EXPECT_EQ(r.op, "copy");
    EXPECT_EQ(r.reads.size(), reads);
    EXPECT_EQ(r.writes.size(), writes);
    EXPECT_EQ(r.bytes_read, r.bytes_written);
    EXPECT_NE(r.reads[0].object, r.writes[0].object);
    return extents(r.reads);
  };
  auto& memory = engine.copies();
  expect([&](auto* to, auto* x) { memory.copy(to, x, 6); }, from, 1, 1);
  const auto rows = expect([&](auto* to, auto* x) { memory.copy_rows(to, 2, x, 3, 2, 2); },
                           {1, 2, 4, 5, 0, 0}, 2, 1);
  EXPECT_EQ(rows[1].first, rows[0].first + 3);
  expect(
      [&](auto* to, auto* x) {
        const void* const blocks[] = {x, x + 3};
        memory.gather(to, blocks, 1, 3);
      },
      {1, 4, 2, 5, 3, 6}, 2, 1);
  expect(
      [&](auto* to, auto* x) {
        void* const blocks[] = {to, to + 3};
        memory.scatter(blocks, x, 1, 3);
      },
      {1, 3, 5, 2, 4, 6}, 1, 2);
  EXPECT_EQ(trace.size(), before + 4);
}

/// Writes a trace to a file of the folder JALI_TRACES, if there is such a variable.
inline void keep_trace(const std::string& name, const Trace& trace) {
  const char* folder = std::getenv("JALI_TRACES");
  if (folder == nullptr) return;
  std::ofstream(std::string(folder) + "/" + name + ".jsonl") << trace.json_lines();
}

}  // namespace jali::backend::test
