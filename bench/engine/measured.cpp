#include "bench/engine/measured.h"

#include <algorithm>
#include <chrono>

namespace jali::bench {

Cost cost_of(const backend::Trace& trace) {
  Cost cost;
  for (const auto& r : trace.records()) {
    cost.mults += static_cast<double>(r.mults);
    cost.bytes += static_cast<double>(r.bytes_read + r.bytes_written);
    for (const auto& written : r.writes) {
      const auto read = std::ranges::find_if(r.reads, [&](const backend::Extent& e) {
        return e.object == written.object && e.offset == written.offset;
      });
      if (read != r.reads.end()) {
        cost.in_place += static_cast<double>(std::min(read->bytes, written.bytes));
      }
    }
    cost.stream_bytes += static_cast<double>(r.stream_bytes);
    cost.complex_butterflies += static_cast<double>(r.complex_butterflies);
    cost.complex_products += static_cast<double>(r.complex_products);
  }
  return cost;
}

std::vector<double> timed(const std::function<void()>& call, const std::function<void()>& wait,
                          double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point t) {
    return std::chrono::duration<double>(Clock::now() - t).count();
  };
  const auto some = [&](int count) {
    const auto begin = Clock::now();
    for (int i = 0; i < count; ++i) call();
    if (wait) wait();
    return since(begin) / count;
  };
  some(3);  // the first calls make tables and fill pools
  const int count = wait ? std::clamp(static_cast<int>(5e-3 / some(1)), 4, 500) : 1;
  std::vector<double> times;
  for (const auto start = Clock::now(); times.empty() || since(start) < seconds;) {
    times.push_back(some(count));
  }
  return times;
}

}  // namespace jali::bench
