#include "entropy.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace {

// SplitMix64: the state is a counter, so that threads need no lock and a fork finds none that is
// held.
constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;
std::atomic<std::uint64_t> state{0};  // 0: entropy comes from the system
std::atomic<std::uint64_t> forks{0};

std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::uint64_t next() {
  std::uint64_t now = state.load(), after;
  do {
    after = now + kStep;
    if (after == 0) after = kStep;
  } while (!state.compare_exchange_weak(now, after));
  return mixed(after);
}

ssize_t from_system(void* out, std::size_t size) {
  const int file = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  const ssize_t got = file < 0 ? -1 : read(file, out, size);
  if (file >= 0) close(file);
  return got;
}

void before_fork() { forks.fetch_add(1); }
void in_child() {
  if (state.load() != 0) jali_test_seed_entropy(mixed(state.load() ^ mixed(forks.load())));
}

// Processes that find a seed in their environment start with it: scripts of the documents, which
// know nothing of tests.
__attribute__((constructor)) void start() {
  pthread_atfork(before_fork, nullptr, in_child);
  if (const char* seed = std::getenv("JALI_TEST_ENTROPY")) {
    jali_test_seed_entropy(std::strtoull(seed, nullptr, 0));
  }
}

}  // namespace

extern "C" {

void jali_test_seed_entropy(std::uint64_t seed) { state.store(seed == 0 ? kStep : seed); }
std::uint64_t jali_test_entropy_state() { return state.load(); }

ssize_t getrandom(void* out, std::size_t size, unsigned /*flags*/) {
  if (state.load() == 0) return from_system(out, size);
  auto* bytes = static_cast<unsigned char*>(out);
  for (std::size_t at = 0; at < size; at += sizeof(std::uint64_t)) {
    const std::uint64_t word = next();
    std::memcpy(bytes + at, &word, size - at < sizeof word ? size - at : sizeof word);
  }
  return static_cast<ssize_t>(size);
}

int getentropy(void* out, std::size_t size) {
  return getrandom(out, size, 0) == static_cast<ssize_t>(size) ? 0 : -1;
}
}
