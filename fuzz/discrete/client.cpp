// The client's side of exact integers: encoding, encryption and decryption; and an evaluator with
// keys that a peer sent.
#include <algorithm>
#include <utility>
#include <vector>

#include "run.h"

namespace jali::fuzz {

using discrete::Ciphertext;

namespace {

constexpr DiscreteOperation kOperations[] = {
    {"encryption",
     [](DiscreteRun& r) {
       const DiscreteKnown x = r.honest();
       r.keep(r.ev().copy(x.x), x);
     }},
    // Numbers of any length and range: those outside are refused.
    {"encoding",
     [](DiscreteRun& r) {
       const std::int64_t a = r.integer(), b = r.integer();
       const std::size_t batch = r.in.once_in(8) ? static_cast<std::size_t>(r.in.integer()) : 1;
       const std::size_t count = r.in.once_in(4) ? r.in.below(255) * 9 : r.n();
       const Numbers values = r.numbers(std::min(a, b), std::max(a, b), count);
       const discrete::Range range =
           r.in.once_in(4) ? discrete::Range{r.integer(), r.integer(), r.in.once_in(4)}
                           : r.ev().noise().range(std::min(a, b), std::max(a, b));
       const discrete::Encoder& encoder = r.ev().encoder();
       const auto plaintext = encoder.encode(values, batch, range);
       (void)encoder.encode_clear(values, batch, r.overflow());
       (void)encoder.scaled(plaintext, r.level(), r.params().factor(0));
       discrete::SecretEncryptor own(r.world.secret, r.world.ring, r.world.params, r.in.seed());
       discrete::PublicEncryptor others(r.world.public_key, r.world.ring, r.world.params,
                                        r.in.seed());
       const int level = r.level();
       Ciphertext x =
           r.in.once_in(2) ? own.encrypt(plaintext, level) : others.encrypt(plaintext, level);
       const std::size_t length = values.size() / batch;
       r.keep(std::move(x), true, [&](std::size_t i) {
         const std::size_t at = i % r.n();
         return at < length ? Wide{values[i / r.n() * length + at]} : Wide{0};
       });
       if (plaintext.poly.empty()) return;
       (void)encoder.lifted(plaintext, r.level(), r.params().factor(0));
       bool within = false;
       const auto numbers = encoder.read(encoder.residues(plaintext.poly), range, within);
       if (!within || numbers[0] != (range.wraps ? numbers[0] : values[0])) {
         stop("a plaintext does not hold what was encoded");
       }
     }},
    // Of what a peer sent, the noise is what it is.
    {"decryption",
     [](DiscreteRun& r) {
       const DiscreteKnown& x = r.any();
       (void)r.world.decryptor.measure(x.x);
       const auto check = r.in.once_in(2) ? discrete::Check::yes : discrete::Check::no;
       const auto numbers = r.world.decryptor.decrypt(x.x, check);
       if (numbers.size() != x.x.batch() * r.n()) stop("there is another number of numbers");
       const discrete::Range& range = x.x.estimate.range;
       for (const std::int64_t v : numbers) {
         if (check == discrete::Check::yes && (v < range.low || v > range.high)) {
           stop("a number is outside of the range");
         }
       }
     }},
    // Keys that came as bytes, which may be anything.
    {"keys",
     [](DiscreteRun& r) {
       rlwe::KeyGenerator generator(r.world.params, r.world.ring, r.in.seed());
       auto made = generator.evaluation_keys(*r.world.secret, std::vector<int>{1}, r.in.once_in(2));
       wire::Bytes bytes = wire::to_bytes(made);
       for (std::size_t k = r.in.once_in(2) ? 0 : r.in.below(8); k > 0; --k) {
         bytes[wire::kHeaderBytes +
               r.in.read<std::uint16_t>() % (bytes.size() - wire::kFrameBytes)] = r.in.byte();
       }
       wire::seal_frame(bytes);
       const discrete::Evaluator theirs(
           r.ev().engine(),
           std::make_shared<const rlwe::EvaluationKeys>(
               wire::from_bytes<rlwe::EvaluationKeys>(bytes, r.world.params, *r.world.ring)));
       const DiscreteKnown& x = r.any();
       const auto nothing = [](std::size_t) { return Wide{0}; };
       r.keep(theirs.square(x.x, r.overflow()), false, nothing);
       r.keep(theirs.rotate(x.x, 1), false, nothing);
     }},
};

}  // namespace

std::span<const DiscreteOperation> discrete_client_operations() { return kOperations; }

}  // namespace jali::fuzz
