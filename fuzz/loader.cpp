// The fuzz target of one loader, kLoader: any bytes give one jali::Error of the four kinds that
// wire/keys.h names, or an object whose bytes are those read. Everything else stops the program.
//
// The checksum would stop nearly every mutation at the door, so that the mutator computes it again
// for most; it starts from real objects of three parameter sets, so that no seed files are needed.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "discrete_objects.h"
#include "jali/base/error.h"
#include "jali/client/message.h"
#include "jali/wire/document.h"
#include "jali/wire/frame.h"
#include "objects.h"
#include "support.h"
#include "tfhe_objects.h"

namespace jali::fuzz {
extern const std::string_view kLoader;  // loader_name.cpp
}

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using namespace jali;

constexpr wire::Limits kLimits{std::size_t{1} << 22,
                               0};  // the sets of parameters here are insecure

/// Objects of one parameter set, of the kind of this target: a kind may have several valid
/// examples.
struct World {
  struct Loader {
    wire::Bytes valid;
    std::function<wire::Bytes(std::span<const std::uint8_t>)> load;
  };
  wire::ParamsHash hash{};
  std::vector<Loader> loaders;

  void add(const std::string& name, const wire::Bytes& valid,
           std::function<wire::Bytes(std::span<const std::uint8_t>)> load) {
    if (name.starts_with(fuzz::kLoader)) loaders.push_back({valid, std::move(load)});
  }
  explicit World(const ckks::Literal& literal) {
    const testing::Objects objects(literal, {1}, /*conjugate=*/false);
    hash = objects.params->hash();
    for (const auto& of : testing::all_loaders(objects)) {
      add(of.name, of.valid, [load = of.load, ring = objects.ring](auto bytes) {
        return load(bytes, *ring, kLimits);
      });
    }
    const auto manifest =
        std::make_shared<client::Manifest>(testing::small_manifest(objects.params));
    add("manifest", client::to_bytes(*manifest),
        [](auto bytes) { return client::to_bytes(client::manifest_from_bytes(bytes, kLimits)); });
    for (const auto& [name, kind] :
         {std::pair{"program", wire::kProgram}, std::pair{"graph", wire::kGraph}}) {
      const std::array<double, 6> numbers{1, -2.5, 0, 1e300, 3, 0.125};
      const auto* first = reinterpret_cast<const std::uint8_t*>(numbers.data());
      const wire::DocumentView document{R"({"content": [{"array": 0}, {"array": 1}]})",
                                        {{{2, 2}, {first, 32}}, {{}, {first + 40, 8}}}};
      add(name, wire::to_bytes(kind, document), [kind = kind](auto bytes) {
        return wire::to_bytes(kind, wire::document_from_bytes(bytes, kind, kLimits));
      });
    }
    const auto holder = client::hold(objects.params, objects.ring, objects.sk);
    add("message", client::to_bytes(testing::known_reply(*manifest, holder)),
        [manifest, ring = objects.ring](auto bytes) {
          try {
            return client::to_bytes(
                client::message_from_bytes(bytes, *manifest, client::fingerprint(*manifest),
                                           client::Direction::reply, *ring, kLimits));
          } catch (const InvalidArgument& error) {  // it is of another program, or a request
            throw CorruptData(error.what());
          }
        });
  }
  explicit World(const discrete::Literal& literal) {
    const testing::DiscreteObjects objects(literal);
    hash = objects.params->hash();
    for (const auto& of : testing::all_loaders(objects)) {
      add(of.name, of.valid, [load = of.load](auto bytes) { return load(bytes, kLimits); });
    }
  }
  explicit World(const tfhe::Literal& literal) {
    const testing::TfheObjects objects(literal);
    hash = objects.params->hash();
    for (const auto& of : testing::all_loaders(objects)) {
      add(of.name, of.valid, [load = of.load](auto bytes) { return load(bytes, kLimits); });
    }
  }
};

const std::vector<World>& worlds() {
  static const auto* all = [] {
    auto* out = new std::vector<World>;
    if (fuzz::kLoader.starts_with("tfhe")) {
      using namespace tfhe;
      for (const Torus torus : {Torus::t32, Torus::t64}) {
        out->emplace_back(
            testing::tfhe_literal(torus, Order::switch_first, Rotation::block_binary));
        out->emplace_back(testing::tfhe_literal(torus, Order::bootstrap_first, Rotation::classic));
      }
      return out;
    }
    if (fuzz::kLoader.starts_with("discrete")) {
      using discrete::Packing;
      out->emplace_back(testing::discrete_literal(Word::w32, Packing::slots));
      out->emplace_back(testing::discrete_literal(Word::w52, Packing::slots));
      out->emplace_back(testing::discrete_literal(Word::w64, Packing::coefficients));
      return out;
    }
    out->emplace_back(testing::small_literal(Word::w32, 40, 1));
    out->emplace_back(testing::small_literal(Word::w52, 40, 1));
    out->emplace_back(testing::small_literal(Word::w64, 50, 1));
    return out;
  }();
  return *all;
}

// The parameters that the header names, or the first.
const World& world_of(std::span<const std::uint8_t> bytes) {
  for (const World& world : worlds()) {
    if (bytes.size() >= 40 && std::equal(world.hash.begin(), world.hash.end(), bytes.begin() + 8)) {
      return world;
    }
  }
  return worlds().front();
}

[[noreturn]] void stop(const char* why) {
  std::fprintf(stderr, "%s loader: %s\n", fuzz::kLoader.data(), why);
  __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> bytes(data, size);
  const World& world = world_of(bytes);
  try {
    const wire::Bytes again = world.loaders.front().load(bytes);
    if (!std::ranges::equal(again, bytes)) stop("accepted bytes that are not those of the object");
  } catch (const Error& error) {
    switch (error.code()) {
      case ErrorCode::corrupt_data:
      case ErrorCode::version:
      case ErrorCode::params_mismatch:
      case ErrorCode::limit_exceeded: break;
      default: stop(error.what());
    }
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  std::minstd_rand random(seed);
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  if (size < wire::kFrameBytes || below(16) == 0) {
    const World& world = worlds()[below(worlds().size())];
    const wire::Bytes& valid = world.loaders[below(world.loaders.size())].valid;
    if (valid.size() <= max_size) {
      std::copy(valid.begin(), valid.end(), data);
      size = valid.size();
    }
  }
  // A window is mutated and may grow or shrink: mostly where the fields are, at the start of the
  // payload.
  const std::size_t payload = std::min(size, wire::kHeaderBytes);
  std::size_t from = payload;
  switch (below(4)) {
    case 0: from = below(size + 1); break;
    case 1: from = below(4) == 0 ? below(payload + 1) : payload + below(size - payload + 1); break;
    default: from = payload + below(std::min<std::size_t>(40, size - payload) + 1);
  }
  const std::size_t length = std::min<std::size_t>(size - from, 1 + below(64));
  std::uint8_t window[128] = {};
  std::memcpy(window, data + from, length);
  const std::size_t room = std::min(sizeof(window), max_size - size + length);
  const bool resize = below(4) == 0;
  const std::size_t now =
      room == 0
          ? 0
          : LLVMFuzzerMutate(window, length, resize ? room : std::max<std::size_t>(length, 1));
  const std::size_t used = resize ? now : length;
  std::memmove(data + from + used, data + from + length, size - from - length);
  std::memcpy(data + from, window, used);
  size = size - length + used;
  if (size >= wire::kFrameBytes && below(16) != 0) wire::seal_frame({data, size});
  return size;
}
