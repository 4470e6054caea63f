// The client's side of TFHE: encryption and decryption; and an evaluator with keys that a peer
// sent.
#include <algorithm>
#include <cmath>
#include <memory>

#include "run.h"

namespace jali::fuzz {

namespace {

constexpr TfheOperation kOperations[] = {
    {"encryption",
     [](TfheRun& r) {
       Values values(r.in.below(6));
       for (auto& v : values) v = r.number();
       std::optional<std::uint64_t> largest;
       if (r.in.once_in(2)) largest = r.number();
       r.keep(r.world.client.encrypt(values, largest), values);
     }},
    {"decryption",
     [](TfheRun& r) {
       const tfhe::Ciphertext x = r.ev().host_copy(r.any().x);
       for (const double e : r.world.client.errors(x)) {
         if (!(std::abs(e) <= 0.5)) stop("an error is above half a step");
       }
       const auto check = r.in.once_in(2) ? tfhe::Check::yes : tfhe::Check::no;
       const Values values = r.world.client.decrypt(x, check);
       if (values.size() != x.size()) stop("there is another number of values");
       for (std::size_t i = 0; i < values.size(); ++i) {
         if (values[i] >= r.params().value_modulus()) stop("a value has no room");
         if (check == tfhe::Check::yes && values[i] > x.degree[i]) stop("a value is too large");
       }
     }},
    // Owners encrypt with a key that came as bytes, and their bytes may be anything.
    {"public key",
     [](TfheRun& r) {
       wire::Bytes bytes = wire::to_bytes(r.world.client.public_key());
       const bool honest = r.in.once_in(2);
       for (std::size_t k = honest ? 0 : r.in.below(8); k > 0; --k) {
         bytes[wire::kHeaderBytes + 16 + r.in.below(bytes.size() - wire::kFrameBytes - 16)] =
             r.in.byte();
       }
       wire::seal_frame(bytes);
       tfhe::PublicEncryptor owner(std::make_shared<const lwe::PublicKey>(
           wire::tfhe_public_key_from_bytes(bytes, r.world.params)));
       Values values(r.in.below(6));
       for (auto& v : values) v = r.number();
       std::optional<std::uint64_t> largest;
       if (r.in.once_in(2)) largest = r.number();
       wire::Bytes sent = wire::to_bytes(owner.encrypt(values, largest));
       const bool untouched = r.in.once_in(2);
       for (std::size_t k = untouched ? 0 : r.in.below(8); k > 0; --k) {
         sent[wire::kHeaderBytes + r.in.below(sent.size() - wire::kFrameBytes)] = r.in.byte();
       }
       wire::seal_frame(sent);
       const tfhe::CompactCiphertext x = wire::tfhe_compact_from_bytes(sent, r.world.params);
       for (const double e : r.world.client.errors(x)) {
         if (!(std::abs(e) <= 0.5)) stop("an error is above half a step");
       }
       if (honest && untouched) {
         if (r.world.client.decrypt(x) != values) stop("the client reads other values");
         r.keep(r.ev().bind(x), values);
       } else {
         r.keep(r.ev().bind(x), std::nullopt);
       }
     }},
    // Keys of a peer may compute anything, but nothing else may happen.
    {"keys",
     [](TfheRun& r) {
       lwe::EvaluationKeys keys = r.world.client.evaluation_keys(r.in.once_in(2));
       auto* at = static_cast<std::uint8_t*>(
           (r.in.once_in(2) ? keys.rotation.rows.bodies : keys.switching.bodies).data());
       for (std::size_t k = r.in.below(8); k > 0; --k) at[r.in.byte()] = r.in.byte();
       wire::Bytes bytes = wire::to_bytes(keys);
       for (std::size_t k = r.in.once_in(2) ? r.in.below(3) : 0; k > 0; --k) {
         bytes[wire::kHeaderBytes + r.in.below(64)] = r.in.byte();
       }
       wire::seal_frame(bytes);
       const tfhe::Evaluator evaluator(
           std::shared_ptr<const backend::TfheOps>(backend::make_cpu_tfhe(r.params().config())),
           wire::tfhe_keys_from_bytes(bytes, r.world.params));
       r.keep(evaluator.refresh(r.any().x), std::nullopt);
     }},
};

}  // namespace

std::span<const TfheOperation> tfhe_client_operations() { return kOperations; }

}  // namespace jali::fuzz
