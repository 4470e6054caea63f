// Does work in forked processes, each of which begins with the same memory.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

namespace jali::testing {

using ForkedBytes = std::vector<std::uint8_t>;

/// The bytes that work() returns in each of `count` child processes. All of them are forked before
/// the first one ends.
template <class Work>
std::vector<ForkedBytes> in_children(std::size_t count, const Work& work) {
  struct Child {
    pid_t pid;
    int from;
  };
  std::vector<Child> children;
  for (std::size_t i = 0; i < count; ++i) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    const pid_t pid = fork();
    if (pid < 0) throw std::runtime_error("no child");
    if (pid == 0) {
      int status = 1;
      try {
        const ForkedBytes bytes = work();
        std::size_t sent = 0;
        while (sent < bytes.size()) {
          const ssize_t n = write(ends[1], bytes.data() + sent, bytes.size() - sent);
          if (n <= 0) break;
          sent += static_cast<std::size_t>(n);
        }
        status = sent == bytes.size() ? 0 : 1;
      } catch (...) {
      }
      _exit(status);
    }
    close(ends[1]);
    children.push_back({pid, ends[0]});
  }
  std::vector<ForkedBytes> out;
  bool failed = false;
  for (const Child& child : children) {
    ForkedBytes bytes;
    std::uint8_t part[4096];
    for (ssize_t n; (n = read(child.from, part, sizeof(part))) > 0;) {
      bytes.insert(bytes.end(), part, part + n);
    }
    close(child.from);
    int status = 0;
    waitpid(child.pid, &status, 0);
    failed |= status != 0;
    out.push_back(std::move(bytes));
  }
  if (failed) throw std::runtime_error("a child failed");
  return out;
}

}  // namespace jali::testing
