#include "jali/api/threads.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

#include "jali/base/error.h"

namespace jali {

namespace {

constexpr int kMaxThreads = 1024;

int cores() {
#ifdef __linux__
  cpu_set_t set;  // a container or taskset may allow fewer cores than the machine has
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

int default_threads() {
  const char* text = std::getenv("JALI_NUM_THREADS");
  if (text == nullptr || *text == '\0') return std::min(cores(), kMaxThreads);
  const std::string_view view(text);
  int threads = 0;
  const auto [end, status] = std::from_chars(view.data(), view.data() + view.size(), threads);
  require<InvalidArgument>(
      status == std::errc() && end == view.data() + view.size() && threads >= 1 &&
          threads <= kMaxThreads,
      "JALI_NUM_THREADS must be a number from 1 to 1024: set it so, or unset it for every core");
  return threads;
}

}  // namespace jali
