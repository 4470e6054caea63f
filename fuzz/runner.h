// What every target of operations has: an input is a list of choices, which take objects through
// operations in any order. Every operation gives one jali::Error, or a result that is whole.
// Everything else stops the program.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "jali/base/error.h"
#include "stream.h"

namespace jali::fuzz {

/// What one input does. Each target defines it.
void run_input(Stream& in);

/// Names the operation that runs, for the report.
extern const char* operation;
[[noreturn]] void stop(const std::string& why);

/// Objects to choose operands from. Operands stay where they are until an operation has ended.
template <class T>
class Pool {
 public:
  static constexpr std::size_t kMost = 6;

  bool empty() const { return objects_.empty(); }
  auto begin() const { return objects_.begin(); }
  auto end() const { return objects_.end(); }
  const T& any(Stream& in) const { return objects_[in.below(objects_.size())]; }
  void start(T x) { objects_.push_back(std::move(x)); }
  /// A result, which joins the others when it is settled.
  void add(T x) { made_.push_back(std::move(x)); }
  void settle(Stream& in) {
    for (T& x : made_) {
      if (objects_.size() < kMost) {
        objects_.push_back(std::move(x));
      } else {
        objects_[in.below(kMost)] = std::move(x);
      }
    }
    made_.clear();
  }

 private:
  std::vector<T> objects_, made_;
};

/// Runs operations until the input ends, at most so many. run: has the input as `in`, and its
/// objects as `pool`. choose(): the next operation, a name for the report and a function of run.
template <class R, class Choose>
void run_operations(R& run, int most, const Choose& choose) {
  for (int k = 0; k < most && !run.in.empty(); ++k) {
    const auto& [name, call] = choose();
    operation = name;
    try {
      call(run);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::internal) stop(error.what());
    }
    run.pool.settle(run.in);
  }
}

}  // namespace jali::fuzz
