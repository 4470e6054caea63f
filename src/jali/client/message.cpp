#include "jali/client/message.h"

#include <algorithm>
#include <string>
#include <utility>

#include "jali/base/error.h"
#include "jali/client/text.h"
#include "jali/wire/ckks_body.h"
#include "jali/wire/poly.h"
#include "jali/wire/reader.h"
#include "jali/wire/writer.h"

namespace jali::client {

namespace {

constexpr std::uint64_t kHeaderBytes = 32 + 8 + 1;
constexpr std::uint64_t kMemoryOfBytes = 5;  // residues take up to so many times the bytes sent
enum Flag : std::uint8_t { kSingle = 1, kReply = 2 };

const std::vector<Port>& ports_of(const Manifest& manifest, Direction direction) {
  return direction == Direction::request ? manifest.inputs : manifest.outputs;
}

void check_direction(Direction given, Direction wanted) {
  require<InvalidArgument>(
      given == wanted,
      wanted == Direction::request
          ? "the message is a server's reply: give the server what encrypt returned"
          : "the message is a request: give it to the server, and decrypt its reply");
}

void check_program(const Digest& given, const Digest& fingerprint) {
  require<InvalidArgument>(
      given == fingerprint,
      "the message belongs to another program, or to another compilation of this one");
}

void check_examples(std::uint64_t examples, bool single) {
  require<InvalidArgument>(!single || examples == 1,
                           "the message is of one example, and says that there are more");
}

}  // namespace

void check(const Message& message, const Manifest& manifest, const Digest& fingerprint,
           Direction direction) {
  check_direction(message.direction, direction);
  check_program(message.program, fingerprint);
  const auto& ports = ports_of(manifest, direction);
  require<InvalidArgument>(std::ranges::equal(message.arrays, ports,
                                              [](const auto& array, const Port& port) {
                                                return array.size() == port.layout.ciphertexts();
                                              }),
                           "the message holds other arrays than the program has");
  const ckks::Params& params = *manifest.params;
  const std::uint64_t chunks = (message.examples + manifest.lanes - 1) / manifest.lanes;
  for (const auto& array : message.arrays) {
    for (const CiphertextPtr& c : array) {
      require<InvalidArgument>(c != nullptr && c->params != nullptr,
                               "the message holds no ciphertext where there should be one");
      require<ParamsMismatch>(c->params->hash() == params.hash(),
                              "the message's ciphertexts have other parameters than the program");
      require<InvalidArgument>(chunks != 0 &&
                                   message.examples <= std::uint64_t{0xffffffff} * manifest.lanes &&
                                   c->batch() == chunks && c->log_slots + 1 == params.log_n(),
                               [&] {
                                 return "the message's ciphertexts do not hold the " +
                                        counted(message.examples, "example") + " that it announces";
                               });
    }
  }
  check_examples(message.examples, message.single);
}

wire::Bytes to_bytes(const Message& message) {
  std::uint64_t bytes = kHeaderBytes;
  const ckks::Params* params = nullptr;
  for (const auto& array : message.arrays) {
    for (const CiphertextPtr& c : array) {
      require<InvalidArgument>(c != nullptr && c->params != nullptr,
                               "the message holds no ciphertext where there should be one");
      require<ParamsMismatch>(params == nullptr || params->hash() == c->params->hash(),
                              "the message's ciphertexts have different parameters");
      params = c->params.get();
      bytes += wire::ciphertext_bytes(*c);
    }
  }
  require<InvalidArgument>(params != nullptr, "cannot write a message without a ciphertext");
  wire::Writer writer(kMessage, params->hash(), bytes);
  writer.raw(message.program);
  writer.u64(message.examples);
  writer.u8((message.single ? kSingle : 0) | (message.direction == Direction::reply ? kReply : 0));
  for (const auto& array : message.arrays) {
    for (const CiphertextPtr& c : array) wire::write_ciphertext(writer, *c);
  }
  return writer.finish();
}

Message message_from_bytes(std::span<const std::uint8_t> bytes, const Manifest& manifest,
                           const Digest& fingerprint, Direction direction, const ring::Ring& ring,
                           const wire::Limits& limits) {
  const wire::Frame frame = wire::open_frame(bytes, kMessage, limits, ring.checkpoint());
  require<ParamsMismatch>(frame.params_hash == manifest.params->hash(),
                          "cannot read a message: it was made for other parameters than those of "
                          "this program");
  wire::Limits memory = limits;
  memory.max_bytes = std::max<std::uint64_t>(limits.max_bytes, limits.max_bytes * kMemoryOfBytes);
  wire::Reader reader(frame, memory);
  Message message;
  reader.copy_to(message.program);
  message.examples = reader.u64();
  const std::uint8_t flags = reader.u8();
  reader.check(flags <= (kSingle | kReply), "its flags are unknown");
  message.single = (flags & kSingle) != 0;
  message.direction = (flags & kReply) != 0 ? Direction::reply : Direction::request;
  // What the first bytes say is checked before anything is made of the others.
  check_direction(message.direction, direction);
  check_program(message.program, fingerprint);
  check_examples(message.examples, message.single);
  std::vector<ckks::Ciphertext> read;
  for (const Port& port : ports_of(manifest, direction)) {
    for (std::uint64_t k = port.layout.ciphertexts(); k > 0; --k) {
      read.push_back(wire::read_ciphertext(reader, manifest.params, ring));
    }
  }
  reader.finish();
  auto next = read.begin();
  for (const Port& port : ports_of(manifest, direction)) {
    auto& array = message.arrays.emplace_back();
    for (std::uint64_t k = port.layout.ciphertexts(); k > 0; --k, ++next) {
      wire::expand_ciphertext(*next, ring);
      array.push_back(std::make_shared<const ckks::Ciphertext>(std::move(*next)));
    }
  }
  check(message, manifest, fingerprint, direction);
  return message;
}

}  // namespace jali::client
