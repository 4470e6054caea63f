// Drives the valid/ready streams of a verilated unit, clock by clock, and checks their rules: a
// beat that has been shown stays until it is taken. The C++ twin of tests/benches/streams.py.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "Unit.h"
#include "verilated.h"

namespace rtl {

using u64 = std::uint64_t;
using Words = std::vector<u64>;  // the fields of a beat

[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}
inline void require(bool condition, const char* what) {
  if (!condition) fail(what);
}

/// Bits [low, low + width) of a port that is wider than 64 bits; width <= 64.
template <class Port>
u64 bits(const Port& port, int low, int width) {
  u64 value = 0;
  for (int i = 0; i < width; ++i) {
    value |= static_cast<u64>((port[(low + i) / 32] >> ((low + i) % 32)) & 1) << i;
  }
  return value;
}
template <class Port>
void set_bits(Port& port, int low, int width, u64 value) {
  for (int i = 0; i < width; ++i) {
    const std::uint32_t mask = 1u << ((low + i) % 32);
    auto& word = port[(low + i) / 32];
    word = ((value >> i) & 1) ? (word | mask) : (word & ~mask);
  }
}

struct Log {
  std::vector<u64> taken, given;  // cycles
  std::vector<Words> beats;
};

/// The JSON line of a latency and of the interval of beats that came, or went, in these cycles.
/// more: further members.
inline void print_speed(u64 latency, const std::vector<u64>& cycles, const char* more = "") {
  std::printf(
      "{\"latency\": %llu, \"interval\": %g%s}\n", static_cast<unsigned long long>(latency),
      static_cast<double>(cycles.back() - cycles.front()) / static_cast<double>(cycles.size() - 1),
      more);
}

/// A unit with a stream in and a stream out. `drive` puts a beat on the data ports, `read` takes
/// one from them.
class Stream {
 public:
  Stream(std::function<void(Unit&, const Words&)> drive, std::function<Words(Unit&)> read, u64 seed)
      : drive_(std::move(drive)), read_(std::move(read)), random_(seed) {
    unit.clk = 0;
  }

  Unit unit;
  std::mt19937_64& random() { return random_; }

  void reset(int cycles = 2) {
    unit.rst = 1;
    unit.in_valid = 0;
    unit.out_ready = 0;
    for (int i = 0; i < cycles; ++i) edge();
    unit.rst = 0;
  }

  /// A cycle without a beat.
  void idle() {
    unit.in_valid = 0;
    edge();
  }

  /// See Unit.run of streams.py.
  Log run(const std::vector<Words>& beats, std::size_t expect, double full_in = 1,
          double full_out = 1, u64 stop_after = ~u64{0}) {
    Log log;
    std::size_t sent = 0;
    bool offering = false, shown = false;
    Words last;
    const u64 start = cycle_;
    for (int quiet = 0; quiet < 30 && cycle_ - start < stop_after;) {
      offering = offering || (sent < beats.size() && chance(full_in));
      unit.in_valid = offering;
      if (offering) drive_(unit, beats[sent]);
      const bool ready = chance(full_out);
      unit.out_ready = ready;
      before_edge(unit, full_in);
      settle();
      at_edge(unit);
      if (unit.out_valid) {
        Words beat = read_(unit);
        require(!shown || beat == last, "a beat changed before it was taken");
        last = beat;
        shown = !ready;
        if (ready) {
          log.beats.push_back(std::move(beat));
          log.given.push_back(cycle_);
        }
      } else {
        require(!shown, "a beat was withdrawn before it was taken");
      }
      if (offering && unit.in_ready) {
        log.taken.push_back(cycle_);
        ++sent;
        offering = false;
      }
      edge();
      require(log.beats.size() <= expect, "more beats came out than went in");
      quiet += sent == beats.size() && log.beats.size() == expect;
      require(cycle_ - start < patience, "beats are missing");
    }
    unit.in_valid = 0;
    return log;
  }

  /// The results of these beats: back to back, under pressure, and after resets with beats inside.
  void check(const std::vector<Words>& beats, const std::vector<Words>& expected) {
    constexpr std::pair<double, double> kPressures[] = {{1, 1}, {0.5, 1}, {1, 0.5}, {0.7, 0.3}};
    reset();
    for (const auto& [in, out] : kPressures) {
      require(run(beats, expected.size(), in, out).beats == expected, "a result is wrong");
    }
    for (const double out : {1.0, 0.4}) {
      interrupt(beats, expected, out);
      require(run(beats, expected.size()).beats == expected, "a result after a reset is wrong");
    }
  }

  /// Resets the unit in the middle of the beats: a beat has been taken, and results of what was
  /// sent are still to come.
  void interrupt(const std::vector<Words>& beats, const std::vector<Words>& expected,
                 double full_out = 1) {
    const Log log = run(beats, expected.size(), 1, full_out, 1 + random_() % beats.size());
    require(!log.taken.empty() && log.beats.size() < expected.size(), "the reset came too late");
    for (std::size_t i = 0; i < log.beats.size(); ++i) {
      require(log.beats[i] == expected[i], "a result before a reset is wrong");
    }
    reset(1);
  }

  /// Prints latency and interval as the JSON line that the test reads: of one beat alone, and of
  /// beats back to back.
  void measure(const std::vector<Words>& beats) {
    reset();
    const Log alone = run({beats[0]}, 1);
    print_speed(alone.given[0] - alone.taken[0], run(beats, beats.size()).given);
  }

  /// The same of frames: the latency is from the first beat in to the first beat out, less `filled`
  /// cycles.
  void measure_frames(const std::vector<Words>& beats, std::size_t expect, u64 filled = 0) {
    reset();
    const Log log = run(beats, expect);
    print_speed(log.given[0] - log.taken[0] - filled, log.given);
  }

  /// The same of sums: the latency is from the last beat of a sum to its result, the interval that
  /// of the beats.
  void measure_sums(const std::vector<Words>& beats, std::size_t expect) {
    reset();
    const Log log = run(beats, expect);
    print_speed(log.given.back() - log.taken.back(), log.taken);
  }

  u64 patience = 10'000'000;
  /// Drives further streams into the unit: before_edge with the probability of a beat, at_edge when
  /// the ports have settled.
  std::function<void(Unit&, double)> before_edge = [](Unit&, double) {};
  std::function<void(Unit&)> at_edge = [](Unit&) {};
  bool chance(double p) { return std::uniform_real_distribution<>(0, 1)(random_) < p; }

 private:
  void settle() {
    unit.clk = 0;
    unit.eval();
  }
  void edge() {
    settle();
    unit.clk = 1;
    unit.eval();
    ++cycle_;
  }

  std::function<void(Unit&, const Words&)> drive_;
  std::function<Words(Unit&)> read_;
  std::mt19937_64 random_;
  u64 cycle_ = 0;
};

/// The seed, which is the first argument.
inline u64 seed_of(int argc, char** argv) {
  Verilated::commandArgs(argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] != '+') return std::strtoull(argv[i], nullptr, 10);
  }
  fail("the seed is missing");
}

}  // namespace rtl
