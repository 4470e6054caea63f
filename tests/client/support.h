// A small manifest, and what belongs to it.
#pragma once

#include <utility>

#include "jali/client/message.h"
#include "jali/client/secret/holder.h"
#include "objects.h"

namespace jali::testing {

inline client::Layout line(std::uint64_t size, std::uint64_t slots, std::uint64_t period) {
  client::Layout layout;
  layout.slots = slots;
  layout.shape = {size};
  layout.period = period;
  return layout;
}

inline client::Port port(std::string name, client::Layout layout, int level) {
  client::Port out;
  out.name = std::move(name);
  out.shape = layout.shape;
  out.layout = std::move(layout);
  out.centre = client::Numbers::all(0.5);
  out.radius = client::Numbers::all(2);
  out.low = client::Numbers::all(-1.5);
  out.high = client::Numbers::all(2.5);
  out.rms = 0.5;
  out.peak = 1;
  out.level = level;
  return out;
}

/// Two inputs, one of them gathered in two ciphertexts, and two outputs, one of them on a grid. 4
/// lanes.
inline client::Manifest small_manifest(const ckks::ParamsPtr& params) {
  client::Manifest m;
  m.params = params;
  m.lanes = 4;
  const std::uint64_t slots = params->slots() / 4;
  m.inputs.push_back(port("x", line(5, slots, 8), params->depth()));
  client::Layout gathered = line(3, slots, slots);
  gathered.kind = client::Layout::Kind::gathered;
  gathered.period = 1;
  gathered.table.assign(2 * slots, -1);
  for (std::size_t k = 0; k < slots; ++k) gathered.table[2 * k] = static_cast<std::int32_t>(k % 3);
  m.inputs.push_back(port("größe", gathered, params->depth()));
  client::Layout image = line(4, slots, slots);
  image.shape = {2, 3, 3};
  image.gap = 2;
  image.grid = {6, 6};
  m.outputs.push_back(port("y", image, 0));
  m.outputs.back().shape = {18};
  std::vector<double> low(18), high(18);
  for (std::size_t k = 0; k < 18; ++k) {
    low[k] = -1 - 0.01 * static_cast<double>(k), high[k] = 1 + 0.02 * static_cast<double>(k);
  }
  m.outputs.back().low = client::Numbers(low);
  m.outputs.back().high = client::Numbers(high);
  m.outputs.push_back(port("z", line(1, slots, 1), 0));
  m.demand.rotations = {{-1, 1}, {1, params->depth()}, {7, 0}};
  m.demand.product = 1;
  m.demand.noise_bits = {20, 22.5};
  return m;
}

/// A server's reply with these numbers for each output, as a program would leave them.
inline client::Message reply_with(const client::Manifest& manifest, const client::Holder& holder,
                                  const std::vector<std::vector<double>>& outputs,
                                  std::uint64_t examples, bool single = false) {
  client::Message out{
      client::fingerprint(manifest), examples, single, client::Direction::reply, {}};
  const ckks::Params& params = *manifest.params;
  const std::size_t lanes = manifest.lanes, slots = params.slots();
  const std::size_t chunks = (examples + lanes - 1) / lanes;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const client::Port& p = manifest.outputs[k];
    std::vector<double> sent(p.size()), all(chunks * slots);
    for (std::size_t e = 0; e < chunks * lanes; ++e) {
      const std::size_t from = std::min<std::size_t>(e, examples - 1) * p.size();
      for (std::size_t i = 0; i < p.size(); ++i) {
        sent[i] = (outputs[k][from + i] - p.centre[i]) / p.radius[i];
      }
      client::pack(p.layout, sent, std::span(all).subspan(e / lanes * slots), chunks * slots, lanes,
                   e % lanes);
    }
    const auto plaintext = holder.encoder->encode(std::span<const double>(all), chunks, 0,
                                                  params.scale(0), params.log_n() - 1);
    out.arrays.push_back(
        {std::make_shared<const ckks::Ciphertext>(holder.encryptor->encrypt(plaintext, {2, 16}))});
  }
  return out;
}

/// The reply of vectors/client, for 6 examples: number i of y is i / 36, and z is a quarter of the
/// example minus 1.
inline client::Message known_reply(const client::Manifest& manifest, const client::Holder& holder) {
  std::vector<double> y(6 * 18), z(6);
  for (std::size_t k = 0; k < y.size(); ++k) y[k] = static_cast<double>(k % 18) / 36;
  for (std::size_t k = 0; k < z.size(); ++k) z[k] = 0.25 * static_cast<double>(k) - 1;
  return reply_with(manifest, holder, {y, z}, 6);
}

}  // namespace jali::testing
