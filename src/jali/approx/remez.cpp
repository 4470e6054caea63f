#include "jali/approx/remez.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "jali/base/error.h"

namespace jali::approx {

namespace {

/// A point and the weighed error there.
struct Point {
  Real x = 0, error = 0;
};

// Even polynomials are polynomials in t = x^2, odd ones x times such, and T_j of t on its interval
// stays independent where T_j of x on [low, high], far from 0, does not.
class Exchange {
 public:
  explicit Exchange(const Problem& problem) : problem_(problem) {
    Real low = problem.on.front().low, high = problem.on.back().high;
    if (problem.parity != Parity::none) {
      low *= low;
      high *= high;
    }
    middle_ = (low + high) / 2;
    half_ = (high - low) / 2;
    const std::size_t degree = problem.degree;
    count_ = 1 + (problem.parity == Parity::none   ? degree
                  : problem.parity == Parity::even ? degree / 2
                                                   : (degree - 1) / 2);
    b_.assign(count_, 0);
  }

  void run() {
    std::vector<Real> points = first_points();
    std::vector<Real> best;
    Real least = std::numeric_limits<Real>::infinity();
    // Quadratic, once it is near; where rounding errors are seen, signs no longer alternate, or
    // nothing gets better.
    constexpr int kMostSteps = 60, kPatience = 4;
    for (int step = 0, better = 0; step < kMostSteps && step - better < kPatience; ++step) {
      const Real level = std::fabs(solve(points));
      const std::vector<Point> extrema = alternating(points);
      Real worst = 0;
      for (const Point& p : extrema) worst = std::max(worst, std::fabs(p.error));
      if (worst < least) {
        if (worst < least * (1 - 0x1p-30L)) better = step;
        least = worst;
        best = b_;
      }
      if (worst <= level * (1 + 0x1p-30L) || extrema.size() <= count_) break;
      points = chosen(extrema);
    }
    b_ = std::move(best);
  }

  Real operator()(Real x) const {
    const Real t = problem_.parity == Parity::none ? x : x * x;
    const Real u = half_ == 0 ? 0 : (t - middle_) / half_;
    Real y1 = 0, y2 = 0;
    for (std::size_t i = count_; i-- > 1;) y2 = std::exchange(y1, 2 * u * y1 - y2 + b_[i]);
    const Real sum = u * y1 - y2 + b_[0];
    return problem_.parity == Parity::odd ? x * sum : sum;
  }

 private:
  Real f(Real x) const {
    const Real y = problem_.f(x);
    require<InvalidArgument>(std::isfinite(y), [&] {
      return "the function is not finite at " + std::to_string(static_cast<double>(x)) +
             ": choose an interval on which it is";
    });
    return y;
  }
  Real weight(Real x) const {
    if (!problem_.weight) return 1;
    const Real w = problem_.weight(x);
    require<InvalidArgument>(std::isfinite(w) && w > 0, "a weight must be positive and finite");
    return w;
  }
  Real error(Real x) const { return weight(x) * ((*this)(x)-f(x)); }

  /// Point k of `count` in an interval, from one end to the other, as the extrema of a Chebyshev
  /// polynomial lie (in t).
  Real place(const Interval& on, std::size_t k, std::size_t count) const {
    const bool squares = problem_.parity != Parity::none;
    const Real low = on.low, high = on.high;
    if (k == 0) return low;
    if (k + 1 == count) return high;
    const Real angle =
        std::numbers::pi_v<Real> * static_cast<Real>(k) / static_cast<Real>(count - 1);
    const Real a = squares ? low * low : low, b = squares ? high * high : high;
    const Real t = (a + b) / 2 - (b - a) / 2 * std::cos(angle);
    return squares ? std::sqrt(t) : t;
  }

  /// count_ + 1 points, shared out by the lengths of the intervals.
  std::vector<Real> first_points() const {
    Real total = 0;
    for (const Interval& on : problem_.on) total += on.half();
    std::vector<Real> out;
    const std::size_t wanted = count_ + 1;
    for (std::size_t i = 0; i < problem_.on.size(); ++i) {
      const std::size_t left = problem_.on.size() - 1 - i, room = wanted - out.size();
      const auto fair = static_cast<std::size_t>(
          std::lround(static_cast<Real>(wanted) * problem_.on[i].half() / total));
      const std::size_t here =
          left == 0
              ? room
              : std::clamp<std::size_t>(fair, 1, std::max<std::size_t>(room, left + 1) - left);
      // Odd polynomials are 0 at 0 whatever their coefficients are: no point lies there.
      const bool zero = problem_.parity == Parity::odd && problem_.on[i].low == 0;
      for (std::size_t k = 0; k < here && out.size() < wanted; ++k) {
        out.push_back(place(problem_.on[i], k + (zero ? 1 : 0), here + (zero ? 1 : 0)));
      }
    }
    return out;
  }

  /// Coefficients for which the weighed errors at the points are h, -h, h ...; h.
  Real solve(const std::vector<Real>& points) {
    const std::size_t n = count_ + 1;
    std::vector<std::vector<Real>> a(n, std::vector<Real>(n + 1));
    for (std::size_t k = 0; k < n; ++k) {
      const Real x = points[k];
      const Real u =
          half_ == 0 ? 0 : ((problem_.parity == Parity::none ? x : x * x) - middle_) / half_;
      const Real factor = problem_.parity == Parity::odd ? x : 1;
      Real before = 0, now = 1;
      for (std::size_t j = 0; j < count_; ++j) {
        a[k][j] = factor * now;
        before = std::exchange(now, j == 0 ? u : 2 * u * now - before);
      }
      a[k][count_] = (k % 2 == 0 ? -1 : 1) / weight(x);
      a[k][n] = f(x);
    }
    for (std::size_t i = 0; i < n; ++i) {  // Gauss, with the largest pivot of the column
      std::size_t pivot = i;
      for (std::size_t k = i + 1; k < n; ++k) {
        if (std::fabs(a[k][i]) > std::fabs(a[pivot][i])) pivot = k;
      }
      std::swap(a[i], a[pivot]);
      if (a[i][i] == 0) continue;
      for (std::size_t k = i + 1; k < n; ++k) {
        const Real m = a[k][i] / a[i][i];
        if (m == 0) continue;
        for (std::size_t j = i; j <= n; ++j) a[k][j] -= m * a[i][j];
      }
    }
    std::vector<Real> solution(n, 0);
    for (std::size_t i = n; i-- > 0;) {
      Real sum = a[i][n];
      for (std::size_t j = i + 1; j < n; ++j) sum -= a[i][j] * solution[j];
      solution[i] = a[i][i] == 0 ? 0 : sum / a[i][i];
    }
    for (std::size_t j = 0; j < count_; ++j) b_[j] = solution[j];
    return solution[count_];
  }

  /// The largest weighed errors between changes of sign, from left to right; their signs alternate.
  /// At `points`, of which the coefficients were made, they do so however small they are there: so
  /// there are as many as points at least.
  std::vector<Point> alternating(const std::vector<Real>& points) const {
    std::vector<Point> out;
    const std::size_t grid = 16 * (count_ + 2) + 1;
    for (const Interval& on : problem_.on) {
      std::vector<Real> places;
      for (std::size_t k = 0; k < grid; ++k) places.push_back(place(on, k, grid));
      for (const Real x : points) {
        if (x > on.low && x < on.high) places.push_back(x);
      }
      std::sort(places.begin(), places.end());
      std::vector<Point> run;  // of equal signs
      const auto close = [&](Real next) {
        if (run.empty()) return;
        const auto top = std::max_element(
            run.begin(), run.end(),
            [](const Point& p, const Point& q) { return std::fabs(p.error) < std::fabs(q.error); });
        const Real before = top == run.begin()
                                ? (out.empty() ? on.low : std::max<Real>(out.back().x, on.low))
                                : (top - 1)->x;
        keep(out, peak(*top, before, top + 1 == run.end() ? next : (top + 1)->x));
        run.clear();
      };
      for (const Real x : places) {
        const Point now{x, error(x)};
        if (!run.empty() && (run.back().error < 0) != (now.error < 0)) close(x);
        run.push_back(now);
      }
      close(on.high);
    }
    return out;
  }

  /// At the end of another interval the sign may be that of the last one.
  static void keep(std::vector<Point>& out, const Point& top) {
    if (out.empty() || (out.back().error < 0) != (top.error < 0)) {
      out.push_back(top);
    } else if (std::fabs(top.error) > std::fabs(out.back().error)) {
      out.back() = top;
    }
  }

  /// The largest error of the sign of `start` between low and high, by golden sections.
  Point peak(Point start, Real low, Real high) const {
    const Real sign = start.error < 0 ? -1 : 1;
    constexpr Real kGolden = 0.6180339887498948482L;
    Real a = low, b = high;
    Real x1 = b - kGolden * (b - a), x2 = a + kGolden * (b - a);
    Real e1 = error(x1), e2 = error(x2);
    for (int step = 0; step < 24; ++step) {
      if (sign * e1 < sign * e2) {
        a = std::exchange(x1, x2);
        e1 = e2;
        x2 = a + kGolden * (b - a);
        e2 = error(x2);
      } else {
        b = std::exchange(x2, x1);
        e2 = e1;
        x1 = b - kGolden * (b - a);
        e1 = error(x1);
      }
    }
    for (const Point& p : {Point{x1, e1}, Point{x2, e2}}) {
      if (sign * p.error > sign * start.error) start = p;
    }
    return start;
  }

  /// count_ + 1 of them, still alternating, without the smallest.
  std::vector<Real> chosen(std::vector<Point> points) const {
    while (points.size() > count_ + 1) {
      const auto size = [](const Point& p) { return std::fabs(p.error); };
      const auto smaller = [&](const Point& p, const Point& q) { return size(p) < size(q); };
      auto least = std::min_element(points.begin(), points.end(), smaller);
      const bool one = points.size() == count_ + 2;
      if (one) {
        least = smaller(points.front(), points.back()) ? points.begin() : points.end() - 1;
      }
      if (least == points.begin() || least + 1 == points.end()) {
        points.erase(least);
      } else {  // with the smaller neighbour, so that signs still alternate
        const auto first = smaller(*(least - 1), *(least + 1)) ? least - 1 : least;
        points.erase(first, first + 2);
      }
    }
    std::vector<Real> out;
    for (const Point& p : points) out.push_back(p.x);
    return out;
  }

  const Problem& problem_;
  Real middle_ = 0, half_ = 0;
  std::size_t count_ = 0;
  std::vector<Real> b_;  // of T_j(u)
};

}  // namespace

Series best_polynomial(const Problem& problem) {
  require<InvalidArgument>(!problem.on.empty(), "a best polynomial needs an interval");
  for (std::size_t i = 0; i < problem.on.size(); ++i) {
    problem.on[i].check();
    require<InvalidArgument>(i == 0 || problem.on[i - 1].high < problem.on[i].low,
                             "the intervals must ascend and not overlap");
  }
  const bool mirrored = problem.parity != Parity::none;
  require<InvalidArgument>(!mirrored || problem.on.front().low >= 0,
                           "of an even or odd function give the intervals of x >= 0");
  require<InvalidArgument>(
      problem.degree <= kMostRemezDegree && (problem.parity != Parity::odd || problem.degree >= 1),
      "a best polynomial has a degree of 0 (odd ones: 1) to 255");
  Exchange exchange(problem);
  exchange.run();
  const double high = problem.on.back().high;
  const Interval hull{mirrored ? -high : problem.on.front().low, high};
  return series_of([&](Real x) { return exchange(x); }, hull, problem.degree, problem.parity);
}

}  // namespace jali::approx
