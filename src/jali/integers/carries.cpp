#include "jali/integers/carries.h"

#include <algorithm>
#include <map>
#include <utility>

#include "jali/base/error.h"

namespace jali::integers {
namespace {

/// V = carry + sum w_i t_i and a threshold theta, so that the carry leaves the chain if and only if
/// V >= theta. If the carry is not in V, then the state of the chain is 2 if V >= theta, 1 if V =
/// theta - 1, else 0.
///
/// Invariant: V with its carry is at most `most`, and a carry leaves iff V >= theta. One more state
/// t of weight w passes the carry on if theta' = w + theta; t = 0 must not reach theta', so w >
/// most - theta; t = 2 must, so w >= theta.
class Chain {
 public:
  Chain(const Builder& b, Form carry, bool known)
      : builder_(&b), sum_(std::move(carry)), known_(known), most_(known ? sum_.hi : 1) {}

  bool fits(int highest) const {
    const int w = weight(highest), theta = theta_ + w;
    const int most = most_ + w * highest - (known_ ? 0 : 1);
    return builder_->takes(0, most, theta) && (known_ || builder_->takes(0, most, theta - 1)) &&
           double(sum_.terms.size()) + 2 <= builder_->space().noise_budget;
  }
  void push(const Form& state, int highest) {
    const int w = weight(highest);
    sum_ += state * w;
    most_ += w * highest;
    theta_ += w;
  }
  Chain with(const Form& state, int highest) const {
    Chain out = *this;
    out.push(state, highest);
    return out;
  }
  double noise() const { return builder_->noise(sum_); }
  Form carry(Builder& b, int scale = 1) const { return b.threshold(sum_, theta_, scale); }
  Form state(Builder& b) const {
    if (sum_.hi <= b.top()) {
      return b.look_up(sum_, [&](int v) { return v >= theta_ ? 2 : v == theta_ - 1 ? 1 : 0; });
    }
    return (b.threshold(sum_, theta_) + b.threshold(sum_, theta_ - 1)).within(0, 2);
  }

 private:
  int weight(int highest) const { return std::max(most_ - theta_ + 1, highest == 2 ? theta_ : 0); }

  const Builder* builder_;
  Form sum_;
  bool known_;
  int theta_ = 1, most_ = 1;
};

/// A run of places with its state, and inside it the runs that begin where it begins and end before
/// a boundary.
struct Segment {
  Form state;
  std::size_t first = 0;  // the boundary before it
  struct Inner {
    std::size_t boundary = 0;
    Form state;
  };
  std::vector<Inner> inner;

  int highest() const {
    int out = state.hi;
    for (const Inner& i : inner) out = std::max(out, i.state.hi);
    return out;
  }
};

/// Chains whose carries enter the segments: entry i before states[i], the last after them all.
/// Every round composes as many segments as fit, and moves the front, whose carry is known, as far
/// as fits.
std::vector<Chain> carries_before(Builder& b, std::span<const Form> states, const Form& carry,
                                  bool boundaries) {
  std::vector<Segment> segments;
  for (std::size_t i = 0; i < states.size(); ++i) segments.push_back({states[i], i, {}});
  std::vector<Chain> out(states.size() + 1, Chain(b, carry, true));
  Form front = carry;
  while (!segments.empty()) {
    Chain chain(b, front, true);
    std::size_t at = 0;
    for (; at < segments.size() && chain.fits(segments[at].highest()); ++at) {
      const Segment& segment = segments[at];
      const int highest = segment.highest();
      for (const auto& inner : segment.inner) {
        out[inner.boundary] = chain.with(inner.state, highest);
      }
      chain.push(segment.state, highest);
      out[at + 1 < segments.size() ? segments[at + 1].first : states.size()] = chain;
    }
    require<InternalError>(at > 0, "a space too small for a chain of carries");
    if (at == segments.size()) break;
    front = chain.carry(b);
    std::vector<Segment> next;
    while (at < segments.size()) {
      Segment run{segments[at].state, segments[at].first, segments[at].inner};
      Chain inside(b, 0, false);
      inside.push(segments[at].state, segments[at].highest());
      std::size_t end = at + 1;
      for (; end < segments.size() && inside.fits(segments[end].highest()); ++end) {
        const int highest = segments[end].highest();
        if (boundaries) {
          run.inner.push_back(
              {segments[end].first, end == at + 1 ? segments[at].state : inside.state(b)});
          for (const auto& inner : segments[end].inner) {
            run.inner.push_back({inner.boundary, inside.with(inner.state, highest).state(b)});
          }
        }
        inside.push(segments[end].state, highest);
      }
      if (end > at + 1) run.state = inside.state(b);
      next.push_back(std::move(run));
      at = end;
    }
    segments = std::move(next);
  }
  return out;
}

/// In a space of 2 bits two states do not fit one look-up. There a state is 2 g + p, with g and p
/// bits, and the carry that leaves places i .. j is [t_j + g >= 2], g the one that leaves i .. j -
/// 1 (Sklansky's tree).
struct Bits {
  Form state, generate, propagate;
};
void prefix_of_bits(Builder& b, std::span<Bits> places) {
  if (places.size() < 2) return;
  const std::size_t half = places.size() / 2;
  prefix_of_bits(b, places.first(half));
  prefix_of_bits(b, places.subspan(half));
  const Bits& low = places[half - 1];
  for (Bits& place : places.subspan(half)) {
    place.generate =
        b.look_up((place.state + low.generate).within(0, 3), [](int v) { return v >= 2 ? 1 : 0; });
    place.propagate =
        b.look_up(place.propagate + low.propagate, [](int v) { return v == 2 ? 1 : 0; });
    place.state = (place.generate * 2 + place.propagate).within(0, 2);
  }
}

/// The carries before each state and after the last.
std::vector<Form> carries_of_bits(Builder& b, std::span<const Form> states, const Form& first) {
  std::vector<Bits> places{{first * 2, first, Form(0)}};
  for (const Form& state : states) {
    places.push_back({state, b.look_up(state, [](int v) { return v == 2 ? 1 : 0; }),
                      b.look_up(state, [](int v) { return v == 1 ? 1 : 0; })});
  }
  prefix_of_bits(b, places);
  std::vector<Form> out;
  for (const Bits& place : places) out.push_back(place.generate);
  return out;
}

bool two_bits(const Builder& b) { return b.p() < b.m() + 2; }

Sum one_by_one(Builder& b, std::span<const Form> sums, std::span<const int> radix, Form carry) {
  Sum out;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const Form sum = sums[i] + carry;
    const int q = radix[i];
    out.digits.push_back(b.look_up(sum, [q](int v) { return v % q; }));
    carry = b.look_up(sum, [q](int v) { return v >= q ? 1 : 0; });
  }
  out.carry = std::move(carry);
  return out;
}

/// The state of a run of places, by a tree.
Form state_of_run(Builder& b, std::vector<Form> states) {
  while (states.size() > 1) {
    std::vector<Form> next;
    for (std::size_t at = 0; at < states.size();) {
      Chain chain(b, 0, false);
      const std::size_t first = at;
      do {
        chain.push(states[at], states[at].hi);
        ++at;
      } while (at < states.size() && chain.fits(states[at].hi));
      next.push_back(at == first + 1 ? states[first] : chain.state(b));
    }
    states = std::move(next);
  }
  return states[0];
}

Sum by_blocks(Builder& b, std::span<const Form> sums, std::span<const int> radix, const Form& carry,
              std::size_t block) {
  std::vector<Form> states;
  for (std::size_t first = 0; first < sums.size(); first += block) {
    std::vector<Form> run;
    for (std::size_t i = first; i < std::min(first + block, sums.size()); ++i) {
      run.push_back(state_of_sum(b, sums[i], radix[i]));
    }
    states.push_back(state_of_run(b, run));
  }
  const std::vector<Chain> before = carries_before(b, states, carry, true);
  Sum out;
  for (std::size_t k = 0; k * block < sums.size(); ++k) {
    const std::size_t count = std::min(block, sums.size() - k * block);
    Sum part = one_by_one(b, sums.subspan(k * block, count), radix.subspan(k * block, count),
                          k ? before[k].carry(b) : carry);
    for (Form& digit : part.digits) out.digits.push_back(std::move(digit));
    out.carry = part.carry;
  }
  return out;
}

/// States of runs of places, each found in as few waves as its length allows. k states fit one
/// look-up. A run that begins at the front of some round, F_0 = 0, F_j = k + .. + k^j, consists of
/// blocks of k^l places, which others share.
class Runs {
 public:
  Runs(Builder& b, std::vector<Form> states) : b_(b), states_(std::move(states)) {
    for (const Form& state : states_) highest_ = std::max(highest_, state.hi);
    for (const bool known : {false, true}) {
      Chain chain(b, known ? Form(0).within(0, 0) : Form(0), known);
      std::size_t count = 0;
      for (; count < states_.size() && chain.fits(highest_); ++count) {
        chain.push(states_[count], highest_);
      }
      fits_ = std::min(fits_, count);
    }
  }

  std::size_t fits() const { return fits_; }
  const Form& operator[](std::size_t place) const { return states_[place]; }
  /// The state of places [first, end). wave: when what it is looked up from should be known.
  Form state(std::size_t first, std::size_t end, int wave) {
    return chain(Chain(b_, 0, false), first, end, wave).state(b_);
  }
  /// The chain of a carry and these places.
  Chain with_carry(const Form& carry, std::size_t first, std::size_t end, int wave) {
    return chain(Chain(b_, carry, true), first, end, wave);
  }

 private:
  Chain chain(const Chain& from, std::size_t first, std::size_t end, int wave) {
    std::vector<Piece> pieces = split(first, end);
    while (true) {
      Chain out = from;
      for (const Piece& piece : pieces) out.push(piece.state, highest_);
      // Too many, or too noisy for weights that need no look-ups of their own: the last ones become
      // one.
      std::size_t merged = pieces.size() > fits_ ? pieces.size() - fits_ + 1 : 1;
      if (merged == 1 && pieces.size() > 2 && out.noise() > b_.space().noise_budget &&
          b_.level(pieces.back().state) < wave &&
          b_.level(pieces[pieces.size() - 2].state) < wave) {
        merged = 2;
      }
      if (merged == 1) return out;
      const std::size_t at = pieces.size() - std::min(merged, fits_);
      Chain tail(b_, 0, false);
      for (std::size_t i = at; i < pieces.size(); ++i) tail.push(pieces[i].state, highest_);
      pieces[at].state = tail.state(b_);
      pieces.resize(at + 1);
    }
  }
  struct Piece {
    std::size_t first = 0;
    Form state;
  };
  /// At least two pieces, if there are two places.
  std::vector<Piece> split(std::size_t first, std::size_t end) {
    const std::size_t length = end - first;
    std::vector<Piece> out;
    while (first < end) {
      std::size_t size = 1, front = 0;
      while (size * fits_ < length && first + size * fits_ <= end && first >= front &&
             (first - front) % (size * fits_) == 0) {
        size *= fits_;
        front += size;
      }
      out.push_back({first, block(first, size)});
      first += size;
    }
    return out;
  }
  Form block(std::size_t first, std::size_t size) {
    if (size == 1) return states_[first];
    const auto key = std::pair(first, size);
    if (const auto at = blocks_.find(key); at != blocks_.end()) return at->second;
    Chain chain(b_, 0, false);
    for (std::size_t i = 0; i < fits_; ++i) {
      chain.push(block(first + i * (size / fits_), size / fits_), highest_);
    }
    return blocks_.emplace(key, chain.state(b_)).first->second;
  }

  Builder& b_;
  std::vector<Form> states_;
  int highest_ = 0;
  std::size_t fits_ = ~std::size_t{0};
  std::map<std::pair<std::size_t, std::size_t>, Form> blocks_;
};

Sum by_tree(Builder& b, std::span<const Form> sums, std::span<const int> radix, const Form& carry) {
  const std::size_t n = sums.size();
  Sum out;
  out.digits.resize(n);
  const auto digit_of = [&](std::size_t i) {
    return b.look_up(sums[i], [q = radix[i]](int v) { return v % q; });
  };
  // A carry that is known at once is a part of the lowest sum.
  std::size_t start = 0;
  Form front = carry;
  if (carry.is_constant()) {
    const Form sum = sums[0] + carry;
    out.digits[0] = b.look_up(sum, [q = radix[0]](int v) { return v % q; });
    front = b.look_up(sum, [q = radix[0]](int v) { return v >= q ? 1 : 0; });
    start = 1;
  }
  out.carry = front;
  if (start == n) return out;
  std::vector<Form> states;
  for (std::size_t i = start; i < n; ++i) states.push_back(state_of_sum(b, sums[i], radix[i]));
  if (two_bits(b)) {
    const std::vector<Form> carries = carries_of_bits(b, states, front);
    for (std::size_t i = start; i < n; ++i) {
      out.digits[i] =
          b.look_up(digit_of(i) + carries[i - start], [q = radix[i]](int v) { return v % q; });
    }
    out.carry = carries.back();
    return out;
  }

  // The fronts F_j, whose carries are known after wave `first` + j, until one look-up reaches the
  // last place from there.
  const std::size_t places = n - start;
  const int first = std::max(1, b.level(front));
  Runs runs(b, std::move(states));
  std::vector<std::size_t> fronts{0};
  std::vector<Chain> chains{Chain(b, front, true)};
  const auto carry_at = [&](std::size_t j, int scale) {
    return j == 0 ? front * scale : chains[j].carry(b, scale);
  };
  bool direct = true;
  for (std::size_t power = 1; places - 1 > fronts.back() + power;) {
    power *= runs.fits();
    const std::size_t next = fronts.back() + power;
    if (next >= places) {
      direct = false;
      break;
    }
    const std::size_t j = fronts.size() - 1;
    chains.push_back(runs.with_carry(carry_at(j, 1), fronts[j], next, first + static_cast<int>(j)));
    fronts.push_back(next);
  }
  // A digit is (M + [state + carry >= 2]) mod q, looked up at M + 2^m (state + carry). Of two
  // places between fronts one has its own carry, and the other one the same carry and a state.
  const int scale = 1 << b.m();
  for (std::size_t j = 0; j < fronts.size(); ++j) {
    const bool last = j + 1 == fronts.size();
    const int wave = first + static_cast<int>(j);
    Form enters;
    for (std::size_t place = fronts[j]; place < (last ? places : fronts[j + 1]); ++place) {
      const std::size_t i = start + place, after = place - fronts[j];
      const int q = radix[i];
      const auto plain = [&](const Form& carried) {
        return b.look_up(digit_of(i) + carried, [&](int v) { return (v % scale + v / scale) % q; });
      };
      const auto with_state = [&](const Form& state) {
        return b.look_up(digit_of(i) + state * scale + enters,
                         [&](int v) { return (v % scale + (v / scale >= 2 ? 1 : 0)) % q; });
      };
      if (last && direct) {
        enters = carry_at(j, scale);
        out.digits[i] =
            after == 0 ? plain(enters) : with_state(runs.state(fronts[j], place, wave - 1));
      } else if (after == 0) {
        out.digits[i] = plain(carry_at(j, 1) * scale);
        enters = carry_at(j, scale);
      } else if (after % 2 == 0 || (after == 1 && j == 0)) {
        enters = runs.with_carry(carry_at(j, 1), fronts[j], place, wave).carry(b, scale);
        out.digits[i] = plain(enters);
      } else {
        out.digits[i] = with_state(runs[place - 1]);
      }
    }
  }
  out.carry = runs.with_carry(carry_at(fronts.size() - 1, 1), fronts.back(), places,
                              first + static_cast<int>(fronts.size()) - 1)
                  .carry(b);
  return out;
}

}  // namespace

Form state_of_sum(Builder& b, const Form& sum, int radix) {
  return b.look_up(sum, [radix](int v) { return v >= radix ? 2 : v == radix - 1 ? 1 : 0; });
}

Form carry_of_states(Builder& b, std::span<const Form> states, const Form& first) {
  if (states.empty()) return first;
  if (two_bits(b)) return carries_of_bits(b, states, first).back();
  return carries_before(b, states, first, false).back().carry(b);
}

Sum resolve_carries(Builder& b, std::span<const Form> sums, std::span<const int> radix,
                    const Form& carry, Carries how) {
  if (how.block >= sums.size()) return one_by_one(b, sums, radix, carry);
  if (how.block == 0) return by_tree(b, sums, radix, carry);
  if (two_bits(b)) return by_tree(b, sums, radix, carry);
  return by_blocks(b, sums, radix, carry, how.block);
}

namespace {

std::vector<int> radices(const Builder& b, const Word& word) {
  std::vector<int> out;
  for (std::size_t i = 0; i < word.size(); ++i) out.push_back(radix(word, i, b));
  return out;
}

}  // namespace

Sum add(Builder& b, const Word& x, const Word& y, Carries how, const Form& carry) {
  std::vector<Form> sums;
  for (std::size_t i = 0; i < x.size(); ++i) sums.push_back(x[i] + y[i]);
  return resolve_carries(b, sums, radices(b, x), carry, how);
}

Sum subtract(Builder& b, const Word& x, const Word& y, Carries how, const Form& carry) {
  std::vector<Form> sums;  // x + (2^bits - 1 - y) + carry
  for (std::size_t i = 0; i < x.size(); ++i) sums.push_back(x[i] - y[i] + (radix(x, i, b) - 1));
  return resolve_carries(b, sums, radices(b, x), carry, how);
}

Sum negate_if(Builder& b, const Word& x, const Form& flag, Carries how) {
  std::vector<Form> sums;  // x or 2^bits - 1 - x, plus the flag
  for (std::size_t i = 0; i < x.size(); ++i) {
    const int q = radix(x, i, b);
    if (flag.is_constant()) {
      sums.push_back(flag.constant ? -x[i] + (q - 1) : x[i]);
    } else {
      sums.push_back(b.look_up_two(x[i], flag, [q](int v, int f) { return f ? q - 1 - v : v; }));
    }
  }
  return resolve_carries(b, sums, radices(b, x), flag, how);
}

}  // namespace jali::integers
