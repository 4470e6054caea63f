#include "jali/approx/sign.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "jali/approx/remez.h"
#include "jali/base/error.h"

namespace jali::approx {

namespace {

constexpr std::size_t kDegrees[] = {3, 7, 15, 31};

/// One polynomial on [-1, 1], near `target` on [low, 1]: proven to be within `error` of it there,
/// and between 0 and target + error on [0, low].
struct Stage {
  Series p;
  Real target = 1, error = 0;
};

/// Between the nodes of an interval p turns this often at least: a difference of neighbours that is
/// no rounding error changes its sign.
std::size_t turns(const Series& p, const Interval& on) {
  const Cosines cosines(16 * p.degree());
  const Real noise = 4 * rounding_of(p);
  std::size_t found = 0;
  int direction = 0;
  Real before = p(on.low);
  for (std::size_t k = cosines.count(); k-- > 0;) {
    const Real y = p(on.middle() + on.half() * cosines.node(k));
    if (std::fabs(y - before) <= noise) continue;
    const int now = y > before ? 1 : -1;
    found += direction != 0 && now != direction;
    direction = now;
    before = y;
  }
  return found;
}

/// A bound on |p - target| on [low, 1]. Near target the least value matters, and has to be known to
/// a part of itself.
Real distance(const Series& p, Real target, Real low) {
  const Interval on{static_cast<double>(low), 1};
  const Real least = target - largest_distance(p, target, on);
  const Real seen = std::max(std::fabs(p(low)), std::numeric_limits<Real>::min());
  if (least > seen * Real{0.98}) return target - least;
  constexpr Real kMostTimes = 2048;
  return largest_distance(p, target, on,
                          static_cast<std::size_t>(std::min(9 / std::sqrt(seen), kMostTimes)));
}

/// The best odd polynomial for 1 on [low, 1]. Its derivative is even and of degree d - 1. If it has
/// (d - 1) / 2 zeros in [low, 1], it has as many in [-1, -low] and none between: there p is
/// monotone. That is proven by counting; without it there is none.
std::optional<Stage> stage(Real low, std::size_t degree) {
  const Interval on{static_cast<double>(low), 1};
  if (!(on.low < 1)) return std::nullopt;
  Stage out;
  out.p = best_polynomial({[](Real) { return Real{1}; }, nullptr, {on}, degree, Parity::odd});
  if (out.p.degree() < degree || turns(out.p, on) < (degree - 1) / 2) return std::nullopt;
  out.error = distance(out.p, 1, low);
  return out;
}

/// The same divided so that no value is above 1. Its coefficients are rounded once more.
Stage normalised(const Stage& s) {
  Stage out = s;
  const Real factor = 1 / (1 + s.error) * (1 - 0x1p-40L);
  Real sum = 0;
  for (double& c : out.p.coefficients) {
    c = static_cast<double>(c * factor);
    sum += std::fabs(static_cast<Real>(c));
  }
  out.target = factor;
  out.error = factor * s.error + 0x1p-52L * sum;
  return out;
}

/// Every stage a normalised one but the last.
struct Chain {
  std::vector<std::size_t> degrees;
  Real low = 1;  // what it leaves of [gap, 1] is [low, 1]
};

class Search {
 public:
  Search(Real gap, Real error) : gap_(gap), error_(error) {}

  std::vector<std::size_t> degrees() {
    constexpr int kMostDepth = 64;
    std::map<int, Chain> best;  // by depth
    best[0] = {{}, gap_};
    for (int depth = 2; depth <= kMostDepth; ++depth) {
      std::optional<std::pair<Real, std::vector<std::size_t>>> done;
      for (const std::size_t degree : kDegrees) {
        const auto before = best.find(depth - depth_of(degree));
        if (before == best.end()) continue;
        const auto s = stage(before->second.low, degree);
        if (!s) continue;
        auto degrees = before->second.degrees;
        degrees.push_back(degree);
        if (s->error <= error_ && (!done || s->error < done->first)) done = {s->error, degrees};
        const Stage n = normalised(*s);
        const Real low = n.target - n.error;
        const auto here = best.find(depth);
        if (low > before->second.low && (here == best.end() || low > here->second.low)) {
          best[depth] = {degrees, low};
        }
      }
      if (done) return lowered(done->second);
    }
    throw InvalidArgument(
        "no composition of 64 levels or fewer tells the signs: choose a larger gap or error");
  }

  /// The stages of these degrees, or nothing if they do not reach the error.
  std::optional<std::vector<Stage>> stages(const std::vector<std::size_t>& degrees) const {
    std::vector<Stage> out;
    Real low = gap_;
    for (std::size_t i = 0; i < degrees.size(); ++i) {
      auto s = stage(low, degrees[i]);
      if (!s) return std::nullopt;
      if (i + 1 < degrees.size()) {
        *s = normalised(*s);
        low = s->target - s->error;
      }
      out.push_back(std::move(*s));
    }
    if (out.back().error > error_) return std::nullopt;
    return out;
  }

 private:
  /// Lower degrees, of equal levels, for fewer products.
  std::vector<std::size_t> lowered(std::vector<std::size_t> degrees) const {
    for (std::size_t i = degrees.size(); i-- > 0;) {
      while (degrees[i] > 3) {
        auto fewer = degrees;
        fewer[i] -= 2;
        if (!stages(fewer)) break;
        degrees = std::move(fewer);
      }
    }
    return degrees;
  }

  Real gap_, error_;
};

}  // namespace

int depth_of(std::size_t degree) { return static_cast<int>(std::bit_width(degree)); }

int Composite::depth() const {
  int sum = 0;
  for (const Series& p : stages) sum += depth_of(p.degree());
  return sum;
}

Real Composite::operator()(Real x) const {
  for (const Series& p : stages) x = p(x);
  return x;
}

Composite sign(double bound, double gap, double error) {
  require<InvalidArgument>(std::isfinite(bound) && gap > 0 && gap < bound && gap / bound >= 0x1p-20,
                           "a sign needs 0 < gap < bound, and the gap at least 2^-20 of the bound");
  Interval{-bound, bound}.check();
  require<InvalidArgument>(error >= 0x1p-40 && error < 1,
                           "the error of a sign is from 2^-40 to below 1");
  // Rounded down: where the gap is not representable, more is asked of the first polynomial.
  const Real low = static_cast<Real>(gap) / bound * (1 - 4 * kEpsilon);
  Search search(std::nextafter(static_cast<double>(low), 0.0), error);
  const auto stages = search.stages(search.degrees());
  require<InternalError>(stages.has_value(), "a composition that was found is not found again");
  Composite out;
  for (const Stage& s : *stages) out.stages.push_back(s.p);
  out.stages.front().on = {-bound, bound};
  out.gap = gap;
  out.error = std::nextafter(static_cast<double>(stages->back().error), 1.0);
  return out;
}

}  // namespace jali::approx
