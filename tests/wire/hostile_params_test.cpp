// Bytes of parameters with a valid checksum from somebody who means harm. They ask for endless
// work, claim more security than they have, or carry numbers and names that are not what they seem.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <random>

#include "../seeded.h"
#include "allocations.h"
#include "jali/base/error.h"
#include "jali/params/ckks/presets.h"
#include "jali/params/security.h"
#include "jali/wire/writer.h"
#include "objects.h"

namespace jali::wire {
namespace {

using ckks::Literal;
using ckks::Params;
using params::BootstrapLiteral;
using params::PlanNumbers;
using testing::kAnySecurity;

ckks::Literal written(int log_n, Word word, int depth, double scale_bits, int dnum) {
  ckks::Literal l;
  l.log_n = log_n;
  l.word = word;
  l.depth = depth;
  l.scale_bits = scale_bits;
  l.dnum = dnum;
  return l;
}

// Bytes as docs/format.md defines them, whether there are such parameters or not.
Bytes bytes_of(const ckks::Literal& l, std::optional<PlanNumbers> plan = std::nullopt,
               const ParamsHash& hash = {}) {
  Writer w(kCkksParams, hash, 128);
  w.u16(static_cast<std::uint16_t>(l.depth));
  w.u16(static_cast<std::uint16_t>(l.security));
  w.u16(static_cast<std::uint16_t>(l.dnum));
  w.u8(static_cast<std::uint8_t>(l.log_n));
  w.u8(static_cast<std::uint8_t>(*l.word));
  w.f64(l.scale_bits);
  w.f64(l.integer_bits);
  w.u8(static_cast<std::uint8_t>(l.name.size()));
  w.raw({reinterpret_cast<const std::uint8_t*>(l.name.data()), l.name.size()});
  if (l.bootstrap) {
    const BootstrapLiteral& b = *l.bootstrap;
    w.u8(static_cast<std::uint8_t>(b.order));
    for (int x :
         {b.weight, b.range, b.degree, b.doublings, b.inverse_sine, b.cts_levels, b.stc_levels}) {
      w.u16(static_cast<std::uint16_t>(x));
    }
    for (double x : {b.ratio_bits, b.cts_bits, b.mod_bits, b.stc_bits}) w.f64(x);
    if (b.head_bits != 0) w.u8(static_cast<std::uint8_t>(b.head_bits));
  }
  if (plan) {
    w.u8(plan->levels);
    w.u8(plan->bootstrap);
  }
  return w.finish();
}

Bytes bytes_of(const ckks::Params& p, std::optional<PlanNumbers> plan) {
  return bytes_of(p.literal(), plan, p.hash());
}

// The message of the E that refuses the bytes. If they are not refused, the test fails and this is
// empty.
template <class E>
std::string refusal(const Bytes& bytes, const Limits& limits = {}) {
  try {
    params_from_bytes(bytes, limits);
    ADD_FAILURE() << "accepted";
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "refused as something else: " << error.what();
  }
  return {};
}

// --- work ----------------------------------------------------------------------------------------

// The search allocates memory level by level. What a refusal allocates therefore tells how much
// work it did, on every machine alike: one plan of 200 levels takes about 30 MB in all, and a
// search for advice takes gigabytes.
constexpr std::size_t kWork = std::size_t{1} << 26;

void expect_little_work(const Bytes& bytes, const std::string& what, const Limits& limits = {}) {
  const std::size_t before = testing::allocated_bytes();
  try {
    params_from_bytes(bytes, limits);
  } catch (const Error& error) {
    EXPECT_NE(error.code(), ErrorCode::internal) << what << ": " << error.what();
  }
  EXPECT_LE(testing::allocated_bytes() - before, kWork) << what;
}

TEST(HostileParams, RefusingDoesLittleWork) {
  // Moduli just above and just below what the table allows, many and few levels, too few and too
  // many digits.
  for (const Word word : {Word::w32, Word::w52, Word::w64}) {
    for (const int log_n : {10, 13, 15, 16, 17}) {
      const double most = params::max_log_qp(log_n, 128);
      for (const int depth : {1, 20, 60, 110, 200}) {
        for (const double share : {0.5, 0.8, 0.99, 1.3}) {
          const double scale = share * most / (depth + 1);
          if (scale < 15 || scale > 120) continue;
          for (const int dnum : {1, 7, 60, 65535}) {
            const auto l = written(log_n, word, depth, scale, dnum);
            const std::string what = "log_n " + std::to_string(log_n) + ", depth " +
                                     std::to_string(depth) + ", scale " + std::to_string(scale) +
                                     ", dnum " + std::to_string(dnum);
            expect_little_work(bytes_of(l), what);
            // The sets of six terminals: the most work of any plan.
            expect_little_work(bytes_of(l, PlanNumbers{9, 0}), what + ", plan 9");
            expect_little_work(bytes_of(l, PlanNumbers{53, 0}), what + ", plan 53");
          }
        }
      }
    }
  }
}

TEST(HostileParams, RefusingChangedParametersDoesLittleWork) {
  const std::uint64_t seed = jali::test::test_seed();
  std::mt19937_64 random(seed);
  std::vector<Bytes> valid;
  for (const Word word : {Word::w32, Word::w52, Word::w64}) {
    for (const char* name : {"n13_d3", "n16_d30", "tensorfhe_n16", "n15_small", "n16_fast"}) {
      valid.push_back(to_bytes(*ckks::Params::create(params::preset(name, word))));
    }
  }
  for (int k = 0; k < 3000; ++k) {
    Bytes bytes = valid[random() % valid.size()];
    for (std::size_t i = 1 + random() % 3; i > 0; --i) {
      const std::size_t at = kHeaderBytes + random() % (bytes.size() - kFrameBytes);
      bytes[at] = static_cast<std::uint8_t>(random() % 2 == 0 ? random() : bytes[at] ^ 1u);
    }
    seal_frame(bytes);
    expect_little_work(bytes, "seed " + std::to_string(seed) + ", case " + std::to_string(k));
    expect_little_work(bytes, "any security, seed " + std::to_string(seed), kAnySecurity);
  }
}

TEST(HostileParams, EverySearchedPresetIsReadWithoutASearch) {
  for (const auto& p : params::bootstrap_presets()) {
    for (const Word word : {Word::w32, Word::w52}) {
      const auto made = ckks::Params::create(params::preset(p.name, word));
      const Bytes bytes = to_bytes(*made);
      expect_little_work(bytes, std::string(p.name));
      const auto read = params_from_bytes(bytes);
      EXPECT_EQ(read->hash(), made->hash()) << p.name;
      EXPECT_EQ(to_bytes(*read), bytes) << p.name;
    }
  }
}

TEST(HostileParams, RefusalsGiveNoAdvice) {
  ckks::Literal bootstrapping =
      ckks::Params::create(params::preset("n15_small", Word::w52))->literal();
  ckks::Literal ratio = bootstrapping, range = bootstrapping, weight = bootstrapping;
  ratio.bootstrap->ratio_bits = ratio.integer_bits + 1;
  range.bootstrap->range = 4;
  weight.bootstrap->weight = 8;
  std::vector<ckks::Literal> hostile = {written(12, Word::w52, 9, 40, 3),
                                        written(13, Word::w64, 3, 38, 1),
                                        written(16, Word::w32, 30, 40, 60),
                                        written(17, Word::w32, 180, 18, 3),
                                        written(15, Word::w52, 14, 40, 2),
                                        written(14, Word::w64, 250, 40, 3),
                                        written(14, Word::w64, 2, 4, 3),
                                        ratio,
                                        range,
                                        weight};
  for (const ckks::Literal& l : hostile) {
    for (const auto& plan : {std::optional<PlanNumbers>(), std::optional(PlanNumbers{4, 0})}) {
      try {
        params_from_bytes(bytes_of(l, plan));
        ADD_FAILURE() << "accepted";
      } catch (const Error& error) {
        const std::string what = error.what();
        for (const char* advice :
             {"use ", "leave", "ask for", "give log_n", "smaller", "fits", "<="}) {
          EXPECT_EQ(what.find(advice), std::string::npos) << what;
        }
        EXPECT_TRUE(what.starts_with("cannot read a parameter set: ")) << what;
      }
    }
  }
}

// --- plans ---------------------------------------------------------------------------------------

TEST(HostileParams, APlanIsTheOneThatWasFoundOrIsRefused) {
  for (const auto& [name, word] : {std::pair{"n13_d3", Word::w32}, {"n15_small", Word::w32}}) {
    const auto made = ckks::Params::create(params::preset(name, word));
    ASSERT_TRUE(made->plan().has_value()) << name;
    std::size_t same = 0;
    for (int levels = 0; levels < 256; ++levels) {
      for (int boot = 0; boot < (made->bootstrap() ? 40 : 2); ++boot) {
        if (levels % 16 != 0 && levels != made->plan()->levels && boot != 0) continue;
        const PlanNumbers plan{static_cast<std::uint8_t>(levels), static_cast<std::uint8_t>(boot)};
        try {
          const auto read = params_from_bytes(bytes_of(*made, plan));
          ++same;  // the hash was the same
          EXPECT_EQ(read->hash(), made->hash());
          EXPECT_TRUE(std::ranges::equal(read->primes(), made->primes()));
          EXPECT_EQ(plan, *made->plan());
        } catch (const CorruptData&) {
        } catch (const ParamsMismatch&) {
        }
      }
    }
    EXPECT_EQ(same, 1u) << name;
  }
}

TEST(HostileParams, ParametersWithoutTheirPlanAreSearchedOnRequestAlone) {
  const auto made = ckks::Params::create(params::preset("n13_d3", Word::w32));
  const Bytes old = bytes_of(*made, std::nullopt);
  EXPECT_NE(refusal<LimitExceeded>(old).find("plan"), std::string::npos);
  Limits limits;
  limits.search = true;
  const auto read = params_from_bytes(old, limits);
  EXPECT_EQ(read->hash(), made->hash());
  EXPECT_EQ(to_bytes(*read), to_bytes(*made));  // with the plan from now on
}

TEST(HostileParams, APlanThatNobodyNeedsIsNotCanonical) {
  const auto made = ckks::Params::create(params::preset("n14_d7", Word::w52));
  ASSERT_FALSE(made->plan().has_value());
  for (const std::uint8_t levels : {0, 1, 4, 201, 202, 255}) {
    refusal<CorruptData>(bytes_of(*made, PlanNumbers{levels, 0}));
  }
}

// --- security ------------------------------------------------------------------------------------

Limits at_least(int security) {
  Limits limits;
  limits.min_security = security;
  return limits;
}

TEST(HostileParams, LessSecurityThanDemandedIsRefused) {
  ckks::Literal weak = testing::small_literal(Word::w52, 40, 1);
  const Bytes insecure = to_bytes(*ckks::Params::create(weak));
  EXPECT_NE(refusal<InsecureParams>(insecure).find("security is 0"), std::string::npos);
  refusal<InsecureParams>(insecure, at_least(192));
  EXPECT_EQ(params_from_bytes(insecure, at_least(0))->security(), 0);
  // Parameters with security 0 are refused even if the table would grant them 128 bits, and say so.
  weak.log_n = 14;
  const auto granted = ckks::Params::create(weak);
  ASSERT_GE(params::granted_security(granted->primes(), 14), 128);
  EXPECT_EQ(granted->security(), 0);
  refusal<InsecureParams>(to_bytes(*granted));

  ckks::Literal l;
  for (const int security : {128, 192, 256}) {
    l.security = security;
    const auto made = ckks::Params::create(l);
    for (const int demanded : {0, 128, 192, 256}) {
      if (demanded > made->security()) {
        const std::string what = refusal<InsecureParams>(to_bytes(*made), at_least(demanded));
        EXPECT_NE(what.find(std::to_string(demanded)), std::string::npos) << what;
      } else {
        EXPECT_EQ(params_from_bytes(to_bytes(*made), at_least(demanded))->hash(), made->hash());
      }
    }
  }
  for (const int nonsense : {-1, 1, 127, 129, 512}) {
    refusal<InvalidArgument>(insecure, at_least(nonsense));
  }
}

TEST(HostileParams, BytesCannotClaimSecurity) {
  // The hash does not cover the security, so the same moduli may claim a security that they do not
  // have.
  ckks::Literal weak = testing::small_literal(Word::w52, 40, 1);
  const auto made = ckks::Params::create(weak);
  for (const int claim : {128, 192, 256}) {
    ckks::Literal l = made->literal();
    l.security = claim;
    refusal<CorruptData>(bytes_of(l, made->plan(), made->hash()));
    refusal<CorruptData>(bytes_of(l, made->plan(), made->hash()), kAnySecurity);
  }
  // The modulus of a sparse secret is only checked for 128 bits, whatever the table grants the
  // other moduli.
  const auto boot = ckks::Params::create(params::preset("n15_small", Word::w52));
  EXPECT_EQ(params_from_bytes(to_bytes(*boot))->hash(), boot->hash());
  EXPECT_EQ(boot->security(), 128);
  refusal<InsecureParams>(to_bytes(*boot), at_least(192));
}

// --- numbers and names ---------------------------------------------------------------------------

TEST(HostileParams, NumbersThatAreNone) {
  const auto made = ckks::Params::create(params::preset("n15_small", Word::w52));
  using Limit = std::numeric_limits<double>;
  for (const double bad :
       {-0.0, -1.0, Limit::quiet_NaN(), Limit::signaling_NaN(), Limit::infinity(),
        -Limit::infinity(), Limit::max(), -Limit::denorm_min()}) {
    const auto with = [&](auto&& set) {
      ckks::Literal l = made->literal();
      set(l);
      return bytes_of(l, made->plan(), made->hash());
    };
    refusal<CorruptData>(with([&](ckks::Literal& l) { l.scale_bits = bad; }));
    refusal<CorruptData>(with([&](ckks::Literal& l) { l.integer_bits = bad; }));
    refusal<CorruptData>(with([&](ckks::Literal& l) { l.bootstrap->ratio_bits = bad; }));
    refusal<CorruptData>(with([&](ckks::Literal& l) { l.bootstrap->cts_bits = bad; }));
    refusal<CorruptData>(with([&](ckks::Literal& l) { l.bootstrap->mod_bits = bad; }));
    refusal<CorruptData>(with([&](ckks::Literal& l) { l.bootstrap->stc_bits = bad; }));
  }
  // If a caller gives -0, it becomes 0, so that the bytes that are written can be read.
  ckks::Literal zero;
  zero.integer_bits = 0;
  ckks::Literal minus = zero;
  minus.integer_bits = -0.0;
  const auto a = ckks::Params::create(zero), b = ckks::Params::create(minus);
  EXPECT_EQ(a->hash(), b->hash());
  EXPECT_EQ(to_bytes(*b), to_bytes(*a));
}

TEST(HostileParams, NamesAreText) {
  ckks::Literal l;
  for (const char* good : {"", "plain", "Größe 2^14", "パラメータ", "\xf0\x9f\x94\x91"}) {
    l.name = good;
    const auto made = ckks::Params::create(l);
    EXPECT_EQ(params_from_bytes(to_bytes(*made))->literal().name, good);
  }
  const auto made = ckks::Params::create(ckks::Literal{});
  for (const std::string& bad :
       {std::string("\xff"), std::string("a\nb"), std::string("\0", 1), std::string("\x1b[2J"),
        std::string("\x7f"), std::string("\xc2\x85"), std::string("\xc0\xaf"), std::string("\x80"),
        std::string("\xe2\x82"), std::string("\xed\xa0\x80"), std::string("\xf4\x90\x80\x80"),
        std::string("\xf8\x88\x80\x80\x80"), std::string("\xe0\x80\xaf")}) {
    l = made->literal();
    l.name = bad;
    refusal<CorruptData>(bytes_of(l, made->plan(), made->hash()));
    EXPECT_THROW(ckks::Params::create(l), InvalidArgument);
  }
}

}  // namespace
}  // namespace jali::wire
