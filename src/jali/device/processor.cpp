#include "jali/device/processor.h"

#include <algorithm>
#include <fstream>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif
#if __has_include(<sys/utsname.h>)
#include <sys/utsname.h>
#endif

namespace jali::device {

std::string processor() {
  std::ifstream info("/proc/cpuinfo");  // Linux; "model name : AMD EPYC"
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
#if __has_include(<sys/utsname.h>)
  if (utsname system{}; uname(&system) == 0) return system.machine;
#endif
  return "CPU";
}

int cores() {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace jali::device
