// Key switching and divisions of the CUDA engine against the CPU engine, bit for bit.
#include <tuple>

#include "gpu_ops.h"
#include "jali/base/error.h"

namespace jali::testing {
namespace {

class GpuSwitch : public GpuOps {
 protected:
  Primes all_primes() const { return range(0, static_cast<PrimeIndex>(prime_count())); }
  /// A key with this number of digits: (digit, part, prime, N).
  Pair fresh_key(std::size_t digits) {
    Pair key = poison(all_primes(), 1, 2 * digits);
    std::vector<std::byte> host;
    for (std::size_t part = 0; part < 2 * digits; ++part) {
      const Pair p = fresh(all_primes(), 1);
      host.insert(host.end(), p.host.begin(), p.host.end());
    }
    key.host = std::move(host);
    gpu->memory()->copy_in(key.device.data(), key.host.data(), key.host.size());
    return key;
  }
  /// The rows of a key over all primes that belong to `primes`, on the GPU.
  device::Buffer cut(const Pair& key, const Primes& primes) {
    const std::size_t row = bytes(1, 1), parts = key.host.size() / (row * prime_count());
    device::Buffer out = pool->allocate(parts * primes.size() * row);
    auto* to = static_cast<std::byte*>(out.data());
    for (std::size_t part = 0; part < parts; ++part) {
      for (const PrimeIndex p : primes) {
        gpu->memory()->copy_in(to, key.host.data() + (part * prime_count() + p) * row, row);
        to += row;
      }
    }
    return out;
  }
};

const std::vector<std::vector<std::uint32_t>> kPartitions{
    {6}, {3, 3}, {2, 2, 2}, {1, 1, 1, 1, 1, 1}, {5, 1}};

TEST_P(GpuSwitch, Lifts) {
  const Primes level{0, 1, 2, 4, 5, 9}, ext{0, 1, 2, 4, 5, 6, 7, 9};
  for (const auto& digits : kPartitions) {
    if (n > (1u << 15) && digits.size() > 3) continue;
    auto x = fresh(level), lifted = poison(ext, 0, digits.size());
    cpu->rlwe().mod_up(lifted.cpu(), x.cpu(), digits),
        gpu->rlwe().mod_up(lifted.gpu(), x.gpu(), digits);
    same(lifted, "mod_up");
    auto key = fresh_key(digits.size() + 1);
    std::vector<std::uint32_t> ids(digits.size());
    std::iota(ids.begin(), ids.end(), 1u);  // the first digit of the key is skipped
    // The GPU's key is cut to the primes that are used, and one more.
    const Primes all = all_primes(), some{0, 1, 2, 4, 5, 6, 7, 8, 9};
    const auto rows = cut(key, some);
    const backend::KeyView ck{key.host.data(), digits.size() + 1, all};
    const backend::KeyView gk{rows.data(), digits.size() + 1, some};
    auto acc0 = poison(ext), acc1 = poison(ext);
    for (const std::uint64_t g : {std::uint64_t{1}, std::uint64_t{25}}) {
      for (const bool accumulate : {false, true}) {
        cpu->rlwe().key_product(acc0.cpu(), acc1.cpu(), lifted.cpu(), ck, ids, g, accumulate);
        gpu->rlwe().key_product(acc0.gpu(), acc1.gpu(), lifted.gpu(), gk, ids, g, accumulate);
        same(acc0, "key_product 0"), same(acc1, "key_product 1");
      }
    }
  }
}

TEST_P(GpuSwitch, KeySwitching) {
  // The own primes first, as the addend needs them, and mixed among the others.
  for (const auto& [level, ext] :
       {std::pair(Primes{0, 1, 2, 4, 5, 8}, Primes{0, 1, 2, 4, 5, 8, 9}),
        std::pair(Primes{0, 1, 2, 4, 5, 9}, Primes{0, 1, 2, 4, 5, 6, 7, 9})}) {
    for (const auto& digits : kPartitions) {
      if (n > (1u << 15) && digits.size() > 3) continue;
      auto x = fresh(level), key = fresh_key(digits.size() + 1);
      std::vector<std::uint32_t> ids(digits.size());
      std::iota(ids.begin(), ids.end(), 1u);
      const Primes all = all_primes();
      const auto rows = cut(key, ext);  // the GPU's has the primes that are used, no more
      const backend::KeyView ck{key.host.data(), digits.size() + 1, all};
      const backend::KeyView gk{rows.data(), digits.size() + 1, ext};
      auto acc0 = poison(ext), acc1 = poison(ext);
      cpu->rlwe().key_switch(acc0.cpu(), acc1.cpu(), x.cpu(), digits, ck, ids);
      gpu->rlwe().key_switch(acc0.gpu(), acc1.gpu(), x.gpu(), digits, gk, ids);
      same(acc0, "key_switch 0"), same(acc1, "key_switch 1");
      if (ext.size() > 7) continue;
      const auto s = scalars(level);
      auto a0 = fresh(level), a1 = fresh(level), b0 = fresh(level), b1 = fresh(level);
      acc0 = poison(ext), acc1 = poison(ext);
      cpu->rlwe().key_switch_add(acc0.cpu(), acc1.cpu(), x.cpu(), digits, ck, ids,
                                 {a0.cpu(), a1.cpu(), s});
      gpu->rlwe().key_switch_add(acc0.gpu(), acc1.gpu(), x.gpu(), digits, gk, ids,
                                 {a0.gpu(), a1.gpu(), s});
      same(acc0, "key_switch_add 0"), same(acc1, "key_switch_add 1");
      acc0 = poison(ext), acc1 = poison(ext);
      const backend::Combination::Product on_cpu{a0.cpu(), a1.cpu(), b0.cpu(), b1.cpu()};
      const backend::Combination::Product on_gpu{a0.gpu(), a1.gpu(), b0.gpu(), b1.gpu()};
      cpu->rlwe().combine_key_switch(acc0.cpu(), acc1.cpu(), {{&on_cpu, 1}}, s, digits, ck, ids);
      gpu->rlwe().combine_key_switch(acc0.gpu(), acc1.gpu(), {{&on_gpu, 1}}, s, digits, gk, ids);
      same(acc0, "one product 0"), same(acc1, "one product 1");
      // Operands of the level's primes and of more. A single product is computed as it is added,
      // several go through memory.
      auto w0 = fresh(all_primes()), w1 = fresh(all_primes());
      for (const auto& [p, m, constant] :
           {std::tuple{1u, 0u, true}, {1u, 1u, true}, {1u, 1u, false}, {2u, 2u, true}}) {
        const auto run = [&, p = p, m = m, constant = constant](const backend::Engine& engine,
                                                                View to0, View to1, auto side,
                                                                backend::KeyView k) {
          const backend::Combination::Product products[] = {
              {side(a0), side(a1), side(w0), side(w1), true},
              {side(w1), side(w0), side(b0), side(b1), false}};
          const backend::Combination::Multiple multiples[] = {{side(w0), side(w1), s},
                                                              {side(b0), side(a1), s}};
          engine.rlwe().combine_key_switch(
              to0, to1,
              {std::span(products).first(p), std::span(multiples).first(m),
               std::span(s).first(constant ? s.size() : 0)},
              s, digits, k, ids);
        };
        acc0 = poison(ext), acc1 = poison(ext);
        run(*cpu, acc0.cpu(), acc1.cpu(), [](Pair& x) -> ConstView { return x.cpu(); }, ck);
        run(*gpu, acc0.gpu(), acc1.gpu(), [](Pair& x) -> ConstView { return x.gpu(); }, gk);
        same(acc0, "combine_key_switch 0"), same(acc1, "combine_key_switch 1");
      }
      auto out0 = poison(level), out1 = poison(level);
      for (const std::uint64_t g : {std::uint64_t{5}, std::uint64_t{2 * n - 1}}) {
        cpu->rlwe().rotate(out0.cpu(), out1.cpu(), acc0.cpu(), acc1.cpu(), a0.cpu(), a1.cpu(), g,
                           digits, ck, ids);
        gpu->rlwe().rotate(out0.gpu(), out1.gpu(), acc0.gpu(), acc1.gpu(), a0.gpu(), a1.gpu(), g,
                           digits, gk, ids);
        same(out0, "rotate 0"), same(out1, "rotate 1");
      }
    }
  }
}

// A division between bases that share no prime encodes or decrypts a message. What it keeps on the
// way lies in blocks that are wiped, so blocks of the same sizes that are not wiped stay as they
// were.
TEST_P(GpuSwitch, DivisionsOfMessagesTakeBlocksThatAreWiped) {
  const Primes ciphertext{0, 1, 2}, message{9}, both{0, 1, 2, 9};
  const auto& blocks = gpu->pool();
  const auto untouched = [&](const Primes& from, const Primes& to) {
    auto x = fresh(from), out = poison(to);
    const auto divide = [&] {
      cpu->rlwe().scale_down(out.cpu(), x.cpu(), nullptr);
      gpu->rlwe().scale_down(out.gpu(), x.gpu(), nullptr);
      same(out, "scale_down");
    };
    divide();  // makes the tables
    const auto dropped = std::ranges::count_if(
        from, [&](PrimeIndex p) { return std::ranges::find(to, p) == to.end(); });
    const std::size_t sizes[] = {bytes(static_cast<std::size_t>(dropped), batch),
                                 bytes(to.size(), batch)};
    {
      device::Buffer first = blocks->allocate(sizes[0]), second = blocks->allocate(sizes[1]);
      gpu->memory()->fill(first.data(), 0x5a, sizes[0]);
      gpu->memory()->fill(second.data(), 0x5a, sizes[1]);
    }
    divide();
    const device::Buffer first = blocks->allocate(sizes[0]), second = blocks->allocate(sizes[1]);
    bool same_as_before = true;
    for (const device::Buffer* block : {&first, &second}) {
      std::vector<std::uint8_t> got(block->bytes());
      gpu->memory()->copy_out(got.data(), block->data(), got.size());
      same_as_before &= std::ranges::all_of(got, [](auto byte) { return byte == 0x5a; });
    }
    return same_as_before;
  };
  EXPECT_FALSE(untouched(both, ciphertext)) << "a division of a ciphertext takes other blocks";
  EXPECT_TRUE(untouched(message, ciphertext)) << "encoding";
  EXPECT_TRUE(untouched(ciphertext, message)) << "decryption";
}

TEST_P(GpuSwitch, RefusesKeysThatLackAPrime) {
  const Primes level{0, 1}, ext{0, 1, 9}, lacking{0, 1, 2};
  auto x = fresh(level), key = fresh_key(1), lifted = fresh(ext), acc0 = poison(ext),
       acc1 = poison(ext);
  const std::vector<std::uint32_t> digits{2}, ids{0};
  const backend::KeyView cut{key.device.data(), 1, lacking};
  EXPECT_THROW(gpu->rlwe().key_switch(acc0.gpu(), acc1.gpu(), x.gpu(), digits, cut, ids),
               InvalidArgument);
  EXPECT_THROW(gpu->rlwe().key_product(acc0.gpu(), acc1.gpu(), lifted.gpu(), cut, ids, 1, false),
               InvalidArgument);
}

TEST_P(GpuSwitch, RotatedSums) {
  const Primes level{0, 1, 2, 8}, ext{0, 1, 2, 8, 9};
  for (const std::size_t digits : {1, 3, 9}) {
    if (n * batch > (1u << 14) && digits > 3) continue;
    auto key = fresh_key(digits + 1), other = fresh_key(digits + 1);
    std::vector<std::uint32_t> ids(digits);
    std::iota(ids.begin(), ids.end(), 1u);
    // On the GPU one key is cut to the primes that are used, and one more.
    const Primes all = all_primes(), some{0, 1, 2, 4, 8, 9};
    const auto rows = cut(other, some);
    auto c0 = fresh(level), c1 = fresh(level), d0 = fresh(level);
    auto up = poison(ext, 0, digits);
    const std::vector<std::uint32_t> sizes = digits == 1   ? std::vector<std::uint32_t>{4}
                                             : digits == 3 ? std::vector<std::uint32_t>{2, 1, 1}
                                                           : std::vector<std::uint32_t>{};
    if (sizes.empty()) {  // more digits than limbs: any residues serve
      std::vector<std::byte> host;
      for (std::size_t j = 0; j < digits; ++j) {
        const Pair p = fresh(ext);
        host.insert(host.end(), p.host.begin(), p.host.end());
      }
      up.host = std::move(host);
      gpu->memory()->copy_in(up.device.data(), up.host.data(), up.host.size());
    } else {
      cpu->rlwe().mod_up(up.cpu(), c1.cpu(), sizes), gpu->rlwe().mod_up(up.gpu(), c1.gpu(), sizes);
    }
    const auto s = scalars(level);
    std::vector<backend::Rotated> on_cpu, on_gpu;
    const std::vector<std::uint64_t> turns{5, 1, 2 * n - 1, n + 1, 25};
    for (std::size_t k = 0; k < turns.size(); ++k) {
      auto& half = k % 2 == 0 ? c0 : d0;
      const bool whole = k % 3 == 0;
      const backend::KeyView ck{whole ? key.host.data() : other.host.data(), digits + 1, all};
      const backend::KeyView gk{whole ? key.device.data() : rows.data(), digits + 1,
                                whole ? all : some};
      on_cpu.push_back({up.cpu(), half.cpu(), c1.cpu(), turns[k], ck});
      on_gpu.push_back({up.gpu(), half.gpu(), c1.gpu(), turns[k], gk});
    }
    std::vector<Pair> weights;
    for (int k = 0; k < 3; ++k) weights.push_back(fresh(ext, k == 1 ? 1 : 0));
    // Every number of sums that has a kernel of its own, and more; more terms than a launch takes.
    for (const std::size_t count : {1, 3, 6, 11, 18}) {
      if (n * batch > (1u << 14) && count > 6) continue;
      std::vector<Pair> outs;
      std::vector<std::vector<std::uint32_t>> which(count);
      std::vector<std::vector<ConstView>> cb(count), gb(count);
      for (std::size_t g = 0; g < count; ++g) {
        for (int half = 0; half < 2; ++half) outs.push_back(g % 2 == 0 ? poison(ext) : fresh(ext));
        for (std::size_t t = 0; t < (g == 2 ? 200 : g % 4 + 1); ++t) {
          which[g].push_back(static_cast<std::uint32_t>((t + g) % turns.size()));
          cb[g].push_back(weights[(t + g) % 3].cpu()), gb[g].push_back(weights[(t + g) % 3].gpu());
        }
      }
      std::vector<backend::WeightedSum> sums_cpu, sums_gpu;
      for (std::size_t g = 0; g < count; ++g) {
        auto &o0 = outs[2 * g], &o1 = outs[2 * g + 1];
        sums_cpu.push_back({o0.cpu(), o1.cpu(), which[g], cb[g], g % 2 == 1});
        sums_gpu.push_back({o0.gpu(), o1.gpu(), which[g], gb[g], g % 2 == 1});
      }
      cpu->rlwe().rotated_sums(on_cpu, ids, s, sums_cpu),
          gpu->rlwe().rotated_sums(on_gpu, ids, s, sums_gpu);
      for (Pair& out : outs) same(out, "rotated_sums");
    }
  }
}

TEST_P(GpuSwitch, OuterSums) {
  const Primes level = range(0, 7), ext = all_primes();
  for (const auto& digits :
       std::vector<std::vector<std::uint32_t>>{{7}, {3, 3, 1}, {1, 1, 1, 1, 1, 1, 1}}) {
    if (n * batch > (1u << 14) && digits.size() == 1) continue;
    std::vector<std::uint32_t> ids(digits.size());
    std::iota(ids.begin(), ids.end(), 1u);
    std::vector<Pair> keys, halves;
    for (int k = 0; k < 2; ++k) keys.push_back(fresh_key(digits.size() + 1));
    for (int k = 0; k < 3; ++k) halves.push_back(fresh(ext));
    // As many terms as a launch takes, and more.
    for (const std::size_t count : {1, 3, 10}) {
      if ((brief(n) || n * batch > (1u << 14)) && count == 10) continue;
      std::vector<backend::Turned> on_cpu, on_gpu;
      const std::vector<std::uint64_t> turns{5, 2 * n - 1, 1, n + 1};
      for (std::size_t k = 0; k < count; ++k) {
        auto &x0 = halves[k % 3], &x1 = halves[(k + 1) % 3], &key = keys[k % 2];
        const std::size_t keyed = digits.size() + 1;
        on_cpu.push_back({x0.cpu(), x1.cpu(), turns[k % 4], {key.host.data(), keyed, ext}});
        on_gpu.push_back({x0.gpu(), x1.gpu(), turns[k % 4], {key.device.data(), keyed, ext}});
      }
      for (const bool accumulate : {false, true}) {
        if (brief(n) && accumulate != (count == 3)) continue;
        auto acc0 = accumulate ? fresh(ext) : poison(ext);
        auto acc1 = accumulate ? fresh(ext) : poison(ext);
        cpu->rlwe().outer_sum(acc0.cpu(), acc1.cpu(), on_cpu, digits, ids, accumulate);
        gpu->rlwe().outer_sum(acc0.gpu(), acc1.gpu(), on_gpu, digits, ids, accumulate);
        same(acc0, "outer_sum 0"), same(acc1, "outer_sum 1");
      }
    }
  }
}

TEST_P(GpuSwitch, Divisions) {
  const Primes x_primes{0, 1, 2, 4, 6, 7};
  for (const Primes& to : {Primes{0, 1, 2, 4}, Primes{0, 1, 2, 4, 6}, Primes{0, 1},
                           Primes{0, 1, 5, 9}, Primes{0, 1, 2, 4, 6, 7}, Primes{1, 3, 8}}) {
    if (brief(n) && n > (1u << 15) && to.size() % 2 == 0) continue;
    auto x0 = fresh(x_primes), x1 = fresh(x_primes), extra = fresh(to);
    auto out0 = poison(to), out1 = poison(to);
    cpu->rlwe().scale_down(out0.cpu(), x0.cpu(), nullptr),
        gpu->rlwe().scale_down(out0.gpu(), x0.gpu(), nullptr);
    same(out0, "scale_down");
    const ConstView ce = extra.cpu(), ge = extra.gpu();
    cpu->rlwe().scale_down(out0.cpu(), x0.cpu(), &ce),
        gpu->rlwe().scale_down(out0.gpu(), x0.gpu(), &ge);
    same(out0, "scale_down with addend");
    out0 = poison(to);
    cpu->rlwe().scale_down_pair(out0.cpu(), out1.cpu(), x0.cpu(), x1.cpu(), nullptr, &ce);
    gpu->rlwe().scale_down_pair(out0.gpu(), out1.gpu(), x0.gpu(), x1.gpu(), nullptr, &ge);
    same(out0, "scale_down_pair 0"), same(out1, "scale_down_pair 1");
    // An addend may be its own output.
    cpu->rlwe().scale_down_pair(extra.cpu(), out1.cpu(), x0.cpu(), x1.cpu(), &ce, nullptr);
    gpu->rlwe().scale_down_pair(extra.gpu(), out1.gpu(), x0.gpu(), x1.gpu(), &ge, nullptr);
    same(extra, "scale_down_pair 0"), same(out1, "scale_down_pair 1");
  }
}

// Digits of the sizes that parameters have: a dozen limbs, more than a thread holds, single limbs.
class GpuSwitchWide : public GpuSwitch {
 protected:
  static constexpr PrimeIndex kLimbs = 34, kSpecial = 12;
  std::size_t prime_count() const override { return kLimbs + kSpecial; }
};

TEST_P(GpuSwitchWide, KeySwitching) {
  const Primes level = range(0, kLimbs), ext = all_primes();
  std::vector<std::vector<std::uint32_t>> partitions{
      {12, 12, 10}, {14, 13, 7}, {20, 14}, std::vector<std::uint32_t>(kLimbs, 1)};
  // Digits for every shape of the base conversion on tensor cores.
  if (cpu->config().word == Word::w32) {
    partitions.insert(partitions.end(),
                      {{10, 9, 8, 7}, {16, 15, 3}, {17, 17}, {31, 3}, {32, 2}, {kLimbs}});
  }
  // Other variants, if they have kernels for such digits; on long rows those of base conversion
  // alone.
  const bool narrow = cpu->config().word == Word::w32;
  const auto variants = every_variant(n <= (1u << 14) ? "" : narrow ? "conversion" : "none");
  for (const auto& digits : partitions) {
    auto x = fresh(level), key = fresh_key(digits.size());
    std::vector<std::uint32_t> ids(digits.size());
    std::iota(ids.begin(), ids.end(), 0u);
    std::vector<std::byte> want[4];
    for (const auto& [name, engine] : variants) {
      SCOPED_TRACE(name + ", " + std::to_string(digits.size()) + " digits");
      auto acc0 = poison(ext), acc1 = poison(ext), out0 = poison(level), out1 = poison(level);
      Pair* const results[] = {&acc0, &acc1, &out0, &out1};
      if (want[0].empty()) {
        const ConstView ce = x.cpu();
        cpu->rlwe().key_switch(acc0.cpu(), acc1.cpu(), x.cpu(), digits,
                               {key.host.data(), digits.size(), ext}, ids);
        cpu->rlwe().scale_down_pair(out0.cpu(), out1.cpu(), acc0.cpu(), acc1.cpu(), &ce, nullptr);
        for (int i = 0; i < 4; ++i) want[i] = results[i]->host;
      }
      for (int i = 0; i < 4; ++i) results[i]->host = want[i];
      gpu->memory()->synchronize();  // the variant has a stream of its own
      const ConstView ge = x.gpu();
      engine->rlwe().key_switch(acc0.gpu(), acc1.gpu(), x.gpu(), digits,
                                {key.device.data(), digits.size(), ext}, ids);
      engine->rlwe().scale_down_pair(out0.gpu(), out1.gpu(), acc0.gpu(), acc1.gpu(), &ge, nullptr);
      engine->memory()->synchronize();
      same(acc0, "key_switch 0"), same(acc1, "key_switch 1");
      same(out0, "scale_down_pair 0"), same(out1, "scale_down_pair 1");
      if (HasFatalFailure()) return;
    }
  }
}

// Division by few limbs, with so many rows that each is one block if it fits a block.
TEST_P(GpuSwitchWide, Divisions) {
  const Primes all = all_primes();
  auto x0 = fresh(all), x1 = fresh(all);
  for (const std::size_t dropped : {1, 3, 4}) {
    const Primes to(all.begin(), all.end() - static_cast<std::ptrdiff_t>(dropped));
    auto extra = fresh(to), out0 = poison(to), out1 = poison(to);
    const ConstView ce = extra.cpu(), ge = extra.gpu();
    cpu->rlwe().scale_down_pair(out0.cpu(), out1.cpu(), x0.cpu(), x1.cpu(), nullptr, &ce);
    gpu->rlwe().scale_down_pair(out0.gpu(), out1.gpu(), x0.gpu(), x1.gpu(), nullptr, &ge);
    same(out0, "scale_down_pair 0"), same(out1, "scale_down_pair 1");
  }
}

std::vector<Case> wide_cases() {
  std::vector<Case> all;
  for (const Word word : {Word::w32, Word::w52, Word::w64}) {
    all.push_back({word, 10, 3});
    all.push_back({word, 13, 1});
    all.push_back({word, 14, 1});
    all.push_back({word, 16, 1});
  }
  all.push_back({Word::w32, 13, 3});
  all.push_back({Word::w32, 15, 1});
  all.push_back({Word::w32, 17, 1});
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, GpuSwitchWide, ::testing::ValuesIn(wide_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(All, GpuSwitch, ::testing::ValuesIn(cases()), case_name);

}  // namespace
}  // namespace jali::testing
