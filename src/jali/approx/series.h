// Chebyshev series on an interval, and bounds on polynomials that hold between the points at which
// they were computed.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <numbers>
#include <span>
#include <vector>

namespace jali::approx {

/// Has at least the precision of double; on x86 it has 64 bits. What is proven allows for its
/// roundings.
using Real = long double;
inline constexpr Real kEpsilon = std::numeric_limits<Real>::epsilon();
inline constexpr Real kPi = std::numbers::pi_v<Real>;

using Function = std::function<Real(Real)>;

struct Interval {
  double low = -1, high = 1;

  Real middle() const { return (static_cast<Real>(low) + high) / 2; }
  Real half() const { return (static_cast<Real>(high) - low) / 2; }
  /// The largest modulus in it.
  Real reach() const;
  bool is_symmetric() const { return low == -high; }
  /// Throws InvalidArgument unless low < high, both are finite and so is their distance.
  void check() const;
};

/// f(-x) = f(x), f(-x) = -f(x), or neither.
enum class Parity { none, even, odd };

/// sum c_j T_j(u), u = (2 x - low - high) / (high - low).
struct Series {
  std::vector<double> coefficients;
  Interval on;

  /// Degree without trailing zeros; 0 for a constant.
  std::size_t degree() const;
  Real operator()(Real x) const;
};

/// A table of cos(pi i / (2 count)): the Chebyshev nodes, and the values of T_j at them. Nodes of
/// opposite sign are exactly opposite.
class Cosines {
 public:
  explicit Cosines(std::size_t count);
  std::size_t count() const { return count_; }
  /// Node k of `count`, from 1 down to -1.
  Real node(std::size_t k) const { return at(2 * k + 1); }
  /// T_j at node k.
  Real chebyshev(std::size_t j, std::size_t k) const { return at(j * (2 * k + 1)); }

 private:
  Real at(std::size_t i) const { return table_[i % (4 * count_)]; }

  std::size_t count_;
  std::vector<Real> table_;
};

/// c_0 .. c_degree of the polynomial with these values at the Chebyshev nodes of its interval;
/// degree < values.size().
std::vector<Real> coefficients_of(std::span<const Real> values, std::size_t degree);

/// The series of a polynomial of this degree: coefficients of the other parity are exactly 0, and
/// so are those that are rounding errors of the largest. A coefficient that is 0 costs nothing, and
/// the highest may cost a level.
Series series_of(const Function& polynomial, const Interval& on, std::size_t degree,
                 Parity parity = Parity::none);

/// Nodes at which a polynomial of this degree is computed to bound it, and the factor from its
/// largest modulus there to that on the whole interval. With N > m Chebyshev nodes no polynomial of
/// degree m is larger anywhere than 1 / cos(m pi / (2 N)) times its largest modulus at a node (H.
/// Ehlich, K. Zeller, Math. Z. 86, 1964).
struct Grid {
  std::size_t nodes = 1;
  Real factor = 1;
};
/// work: what a node costs, in products. The more nodes, the nearer the factor is to 1: with 16 m
/// of them it is 1.005, with k m of them 1 + 1.24 / k^2.
Grid grid_for(std::size_t degree, std::size_t work, std::size_t times = 16);

/// A bound on |p(x) - target| for all x of `on`, an interval inside p's own, and for p in exact
/// arithmetic. times: as in grid_for.
Real largest_distance(const Series& p, Real target, const Interval& on, std::size_t times = 16);
/// A bound on |p| on its whole interval.
Real largest_modulus(const Series& p);
/// A bound on what operator() is off p by roundings, for x in p's interval.
Real rounding_of(const Series& p);

}  // namespace jali::approx
