#include "jali/api/threads.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "jali/base/error.h"
#include "jali/device/processor.h"

namespace jali {

namespace {

constexpr int kMaxThreads = 1024;

}  // namespace

int default_threads() {
  const char* text = std::getenv("JALI_NUM_THREADS");
  if (text == nullptr || *text == '\0') return std::min(device::cores(), kMaxThreads);
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
