// Searches the memory of a process as an attacker would: everything that is writable, also freed
// blocks and dead stack frames.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <semaphore>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "forked.h"
#include "jali/random/prng.h"

namespace jali::testing {

inline constexpr const char* kNotSearched = "sanitizers keep copies of frames and freed blocks";

/// Bytes to look for. They are kept masked, so that the search does not find this object.
class Needle {
 public:
  Needle(std::string name, std::span<const std::uint8_t> masked)
      : name_(std::move(name)), masked_(masked.begin(), masked.end()) {}
  const std::string& name() const { return name_; }

  static std::uint8_t mask(std::uint8_t byte) { return byte ^ 0xa7; }

  bool in(std::span<const std::uint8_t> bytes) const {
    const std::uint8_t first = mask(masked_[0]);
    const std::uint8_t* at = bytes.data();
    const std::uint8_t* end = at + bytes.size();
    while (static_cast<std::size_t>(end - at) >= masked_.size()) {
      at = static_cast<const std::uint8_t*>(
          std::memchr(at, first, static_cast<std::size_t>(end - at) - masked_.size() + 1));
      if (at == nullptr) return false;
      std::size_t k = 1;
      while (k < masked_.size() && at[k] == mask(masked_[k])) ++k;
      if (k == masked_.size()) return true;
      ++at;
    }
    return false;
  }

 private:
  std::string name_;
  std::vector<std::uint8_t> masked_;
};

/// Secrets to look for. A child process computes them, because its memory is not searched.
class Secrets {
 public:
  static constexpr std::size_t kLongest = 4 * 255;  // masked() has one byte for the length
  /// bytes: a multiple of 4, at most kLongest.
  void add(const std::string& name, const void* data, std::size_t bytes) {
    if (bytes == 0 || bytes % 4 != 0 || bytes > kLongest) throw std::length_error(name);
    const auto* from = static_cast<const std::uint8_t*>(data);
    names_.push_back(name);
    values_.emplace_back(from, from + bytes);
  }
  /// A seed, and each of its words as a vector register holds it while several blocks are made at
  /// once.
  void add_seed(const std::string& name, const random::Seed& seed) {
    add(name, seed.data(), 16);
    for (std::size_t k = 0; k < 8; ++k) {
      std::uint32_t word[4];
      std::memcpy(&word[0], &seed[4 * k], 4);
      word[1] = word[2] = word[3] = word[0];
      add(name + ", word " + std::to_string(k), word, sizeof(word));
    }
  }
  /// Blocks of a stream: the first and the last of those that are made at once.
  void add_stream(const std::string& name, const random::Seed& seed, std::uint64_t stream) {
    std::vector<std::uint8_t> bytes(128 * 64);
    random::Prng(seed, stream).fill(bytes);
    for (const std::size_t block : {0, 15, 63, 127}) {
      add(name + ", block " + std::to_string(block), &bytes[64 * block], 32);
    }
  }
  /// For each needle: its name, a 0, a quarter of its length, and its masked bytes.
  ForkedBytes masked() const {
    ForkedBytes out;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      out.insert(out.end(), names_[i].begin(), names_[i].end());
      out.push_back(0);
      out.push_back(static_cast<std::uint8_t>(values_[i].size() / 4));
      for (const std::uint8_t byte : values_[i]) out.push_back(Needle::mask(byte));
    }
    return out;
  }

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<std::uint8_t>> values_;
};

/// The needles for the secrets that name_them(Secrets&) adds.
template <class NameThem>
std::vector<Needle> needles(const NameThem& name_them) {
  const ForkedBytes bytes = in_children(1, [&] {
    Secrets secrets;
    name_them(secrets);
    return secrets.masked();
  })[0];
  std::vector<Needle> out;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::string name(reinterpret_cast<const char*>(&bytes[at]));
    at += name.size() + 1;
    const std::size_t count = std::size_t{4} * bytes[at++];
    out.emplace_back(name, std::span(bytes).subspan(at, count));
    at += count;
  }
  return out;
}

/// The names of the needles that are somewhere in this process's writable memory.
inline std::vector<std::string> found_in_process(std::span<const Needle> needles) {
  constexpr std::size_t kChunk = std::size_t{1} << 20, kOverlap = 1024;
  constexpr std::size_t kLargest = std::size_t{1} << 32;  // beyond lie the tables of sanitizers
  std::vector<bool> found(needles.size());
  const auto chunk = std::make_unique<std::uint8_t[]>(kChunk);
  const int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  char line[512];
  while (maps != nullptr && std::fgets(line, sizeof(line), maps) != nullptr) {
    unsigned long from = 0, to = 0;
    char rights[5] = "";
    if (std::sscanf(line, "%lx-%lx %4s", &from, &to, rights) != 3) continue;
    if (rights[0] != 'r' || rights[1] != 'w' || to - from > kLargest) continue;
    while (from < to) {
      const ssize_t got = pread(memory, chunk.get(), std::min<std::size_t>(kChunk, to - from),
                                static_cast<off_t>(from));
      if (got <= 0) break;
      const auto count = static_cast<std::size_t>(got);
      for (std::size_t i = 0; i < needles.size(); ++i) {
        if (!found[i]) found[i] = needles[i].in({chunk.get(), count});
      }
      if (from + count >= to) break;
      from += count > kOverlap ? count - kOverlap : count;
    }
  }
  std::fill_n(chunk.get(), kChunk, std::uint8_t{0});
  if (maps != nullptr) std::fclose(maps);
  close(memory);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < needles.size(); ++i) {
    if (found[i]) names.push_back(needles[i].name());
  }
  return names;
}

/// What found_in_process finds after work(), while the stack on which work() ran is as it was left.
template <class Work>
std::vector<std::string> found_after(std::span<const Needle> needles, const Work& work) {
  std::binary_semaphore done{0}, scanned{0};
  std::thread worker([&] {
    work();
    done.release();
    scanned.acquire();
  });
  done.acquire();
  auto names = found_in_process(needles);
  scanned.release();
  worker.join();
  return names;
}

}  // namespace jali::testing
