// The CPU engines of this machine: every instruction set, with one thread and with two.
#pragma once

#include "support.h"

namespace jali::backend::test {

inline constexpr Word kWords[] = {Word::w32, Word::w52, Word::w64};

inline std::vector<std::shared_ptr<const Engine>> cpu_engines(Config config) {
  std::vector<std::shared_ptr<const Engine>> engines;
  for (const std::string& isa : cpu_isas()) {
    for (const int threads : {1, 2}) {
      config.isa = isa;
      config.threads = threads;
      engines.push_back(make_cpu_engine(config));
    }
  }
  return engines;
}

inline std::string engine_name(const Engine& engine) {
  return engine.name() + ", " + std::to_string(engine.config().threads) + " threads";
}

/// The oracle and every CPU engine, for one ring.
class Engines {
 public:
  explicit Engines(Config config) : ref_(make_ref_engine(config)), cpu_(cpu_engines(config)) {}

  const Config& config() const { return ref_->config(); }
  const Engine& ref() const { return *ref_; }
  const std::vector<std::shared_ptr<const Engine>>& cpu() const { return cpu_; }

  /// run(engine) returns a vector of blocks. Those of every engine must equal the oracle's, bit for
  /// bit.
  template <class Run>
  void expect_same(const std::string& what, Run run) const {
    SCOPED_TRACE(what);
    const std::vector<Block> want = run(*ref_);
    for (const auto& engine : cpu_) {
      const std::vector<Block> have = run(*engine);
      ASSERT_EQ(have.size(), want.size());
      for (std::size_t i = 0; i < have.size(); ++i) {
        ASSERT_TRUE(same(have[i], want[i])) << engine_name(*engine) << ", output " << i;
      }
    }
  }

 private:
  std::unique_ptr<Engine> ref_;
  std::vector<std::shared_ptr<const Engine>> cpu_;
};

/// Describes the shape of a failing case, e.g. "limbs 3 batch 1 fill 2".
template <class... Parts>
std::string describe(const Parts&... parts) {
  std::string text;
  const auto append = [&](const auto& part) {
    if constexpr (std::is_convertible_v<decltype(part), std::string>) {
      text += part;
    } else if constexpr (requires { part.begin(); }) {
      for (const auto& x : part) text += std::to_string(x) + ",";
    } else {
      text += std::to_string(static_cast<long long>(part));
    }
    text += ' ';
  };
  (append(parts), ...);
  return text;
}

}  // namespace jali::backend::test
