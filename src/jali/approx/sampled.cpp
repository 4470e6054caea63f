#include "jali/approx/sampled.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "jali/approx/remez.h"
#include "jali/base/error.h"

namespace jali::approx {

namespace {

std::string text(Real value) {
  std::ostringstream out;
  out << static_cast<double>(value);
  return out.str();
}

Real finite_value(const Function& f, Real x) {
  const Real y = f(x);
  require<InvalidArgument>(std::isfinite(y), [&] {
    return "the function is not finite at " + text(x) + ": choose an interval on which it is";
  });
  return y;
}

/// What was seen of |p - f|, where, and of f at the nodes of the degree.
class Look {
 public:
  Look(const Function& f, const Series& p) : f_(f), p_(p) {}

  double error(std::size_t degree) {
    const Interval& on = p_.on;
    // How far f goes at the nodes, of which p is made; a few more where these are few.
    Real low = finite_value(f_, on.middle()), high = low;
    std::vector<Real> x{on.low, on.high};
    const Cosines nodes(std::max<std::size_t>(degree + 1, 33));
    for (std::size_t k = 0; k < nodes.count(); ++k) {
      x.push_back(on.middle() + on.half() * nodes.node(k));
      const Real y = finite_value(f_, x.back());
      low = std::min(low, y);
      high = std::max(high, y);
    }
    // Between the nodes and at the ends; then nearer and nearer to where p was worst, and to where
    // f is largest. Next to a pole that has no end.
    const Cosines grid(4 * degree + 33);
    for (std::size_t k = 0; k < grid.count(); ++k)
      x.push_back(on.middle() + on.half() * grid.node(k));
    if (on.low < 0 && on.high > 0) x.push_back(0);
    std::sort(x.begin(), x.end());
    x.erase(std::unique(x.begin(), x.end()), x.end());
    zoom(x, [&](Real at) { return see(at); });
    zoom(x, [&](Real at) {
      see(at);
      return std::fabs(f_(static_cast<double>(at)));
    });
    constexpr Real kRoundings = 0x1p-40L;  // of a constant function
    require<InvalidArgument>(
        error_ <= 2 * (high - low) + kRoundings * (std::fabs(low) + std::fabs(high)), [&] {
          return "a polynomial of degree " + std::to_string(degree) +
                 " does not follow the function on [" + text(on.low) + ", " + text(on.high) +
                 "]: at " + text(where_) + " it is " + text(f_(where_)) + ", the polynomial " +
                 text(p_(where_)) +
                 ". Choose an interval without a pole or a jump there, or a higher degree";
        });
    return static_cast<double>(error_);
  }

 private:
  /// Looks at the places, and then at places around the one where `size` is largest.
  template <class Size>
  void zoom(const std::vector<Real>& x, Size size) {
    std::size_t worst = 0;
    Real most = -1;
    for (std::size_t k = 0; k < x.size(); ++k) {
      if (const Real s = size(x[k]); s > most) {
        most = s;
        worst = k;
      }
    }
    Real a = x[worst > 1 ? worst - 2 : 0], b = x[std::min(worst + 2, x.size() - 1)];
    for (int step = 0; step < 20; ++step) {
      constexpr int kParts = 16;
      const Real width = (b - a) / kParts;
      Real top = -1, place = a;
      for (int i = 0; i <= kParts; ++i) {
        if (const Real s = size(a + width * i); s > top) {
          top = s;
          place = a + width * i;
        }
      }
      a = std::max<Real>(place - width, p_.on.low);
      b = std::min<Real>(place + width, p_.on.high);
    }
  }

  Real see(Real x) {
    // Functions of users take doubles.
    x = std::clamp(static_cast<double>(x), p_.on.low, p_.on.high);
    const Real e = std::fabs(finite_value(f_, x) - p_(x));
    if (e > error_) {
      error_ = e;
      where_ = x;
    }
    return e;
  }

  const Function& f_;
  const Series& p_;
  Real error_ = 0, where_ = 0;
};

/// Without coefficients that values of f in double precision do not tell from 0.
Series cleaned(Series p, const Function& f) {
  Real largest = 0;
  const Cosines nodes(p.coefficients.size());
  for (std::size_t k = 0; k < nodes.count(); ++k) {
    largest = std::max(largest, std::fabs(f(p.on.middle() + p.on.half() * nodes.node(k))));
  }
  for (double& c : p.coefficients) {
    if (std::fabs(c) < 0x1p-50L * largest) c = 0;
  }
  p.coefficients.resize(p.degree() + 1);
  return p;
}

Measured measured(const Function& f, Series p, std::size_t degree) {
  Measured out{cleaned(std::move(p), f), 0};
  out.error = Look(f, out.polynomial).error(degree);
  return out;
}

Function in_doubles(const Function& f, const Interval& on) {
  return [&f, on](Real x) {
    return finite_value(f, std::clamp(static_cast<double>(x), on.low, on.high));
  };
}

}  // namespace

Measured interpolate(const Function& f, const Interval& on, std::size_t degree) {
  on.check();
  return measured(f, series_of(in_doubles(f, on), on, degree), degree);
}

Measured minimax(const Function& f, const Interval& on, std::size_t degree) {
  on.check();
  const Function g = in_doubles(f, on);
  return measured(f, best_polynomial({g, nullptr, {on}, degree}), degree);
}

}  // namespace jali::approx
