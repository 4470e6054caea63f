// The flat C interface of a client. Exceptions end here.
#include "jali/api/client.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jali/base/error.h"
#include "jali/base/wipe.h"
#include "jali/client/secret/client.h"
#include "jali/rlwe/host_ring.h"
#include "jali/rlwe/secret/key_generator.h"
#include "jali/wire/secret/secret_key.h"

using namespace jali;

struct jali_client {
  client::Manifest manifest;
  Digest program{};
  std::shared_ptr<const ring::Ring> ring;
  std::optional<client::Client> holder;  // with the secret key

  const client::Client& with_secret() const {
    require<InvalidArgument>(holder.has_value(),
                             "this client has no secret key: call jali_client_make_secret, or "
                             "jali_client_read_secret with one that was kept");
    return *holder;
  }
};

struct jali_results {
  std::vector<std::vector<double>> outputs;
  std::uint64_t examples = 0;
  bool single = false;

  ~jali_results() {
    for (auto& numbers : outputs) wipe(numbers.data(), numbers.size() * sizeof(double));
  }
};

namespace {

constexpr int code_of(ErrorCode code) { return static_cast<int>(code) + 1; }
static_assert(code_of(ErrorCode::invalid_argument) == JALI_INVALID_ARGUMENT);
static_assert(code_of(ErrorCode::insecure) == JALI_INSECURE);
static_assert(code_of(ErrorCode::range_exceeded) == JALI_RANGE_EXCEEDED);
static_assert(code_of(ErrorCode::wrong_decryption) == JALI_WRONG_DECRYPTION);
static_assert(code_of(ErrorCode::params_mismatch) == JALI_PARAMS_MISMATCH);
static_assert(code_of(ErrorCode::key_mismatch) == JALI_KEY_MISMATCH);
static_assert(code_of(ErrorCode::corrupt_data) == JALI_CORRUPT_DATA);
static_assert(code_of(ErrorCode::version) == JALI_VERSION);
static_assert(code_of(ErrorCode::limit_exceeded) == JALI_LIMIT_EXCEEDED);
static_assert(code_of(ErrorCode::out_of_memory) == JALI_OUT_OF_MEMORY);
static_assert(code_of(ErrorCode::internal) == JALI_INTERNAL);

/// Thrown where the caller's function asked to stop.
struct Stopped : std::exception {};

int told(jali_error* error, int code, const char* text) {
  if (error != nullptr) {
    error->code = code;
    std::size_t count = std::min(std::strlen(text), sizeof(error->text) - 1);
    // Not in the middle of a character of UTF-8.
    while (count > 0 && (static_cast<unsigned char>(text[count]) & 0xc0) == 0x80) --count;
    std::memcpy(error->text, text, count);
    error->text[count] = 0;
  }
  return code;
}

template <class Call>
int guarded(jali_error* error, const Call& call) noexcept {
  try {
    call();
    return told(error, JALI_OK, "");
  } catch (const Stopped&) {
    return told(error, JALI_STOPPED,
                "the function that takes the bytes or the progress asked to stop");
  } catch (const Error& e) {
    return told(error, code_of(e.code()), e.what());
  } catch (const std::bad_alloc&) {
    return told(error, JALI_OUT_OF_MEMORY,
                "there is too little memory for this: free some, or send fewer examples at once");
  } catch (const std::exception& e) {
    return told(error, JALI_INTERNAL, e.what());
  } catch (...) {
    return told(error, JALI_INTERNAL, "an unknown exception: please report");
  }
}

template <class T>
void need(const T* pointer, const char* name) {
  require<InvalidArgument>(pointer != nullptr,
                           [&] { return std::string(name) + " must not be NULL"; });
}

std::span<const std::uint8_t> bytes_of(const std::uint8_t* bytes, std::size_t count) {
  require<InvalidArgument>(bytes != nullptr || count == 0,
                           "bytes must not be NULL unless there are none");
  return {bytes, count};
}

wire::Sink sink_of(jali_sink sink, void* context) {
  require<InvalidArgument>(sink != nullptr, "the function that takes the bytes must not be NULL");
  return [sink, context](std::span<const std::uint8_t> bytes) {
    if (sink(context, bytes.data(), bytes.size()) != 0) throw Stopped();
  };
}

void adopt(jali_client& client, rlwe::SecretKey key) {
  client.holder.emplace(client.manifest,
                        client::hold(client.manifest.params, client.ring,
                                     std::make_shared<const rlwe::SecretKey>(std::move(key))));
}

void need_no_secret(const jali_client& client) {
  require<InvalidArgument>(!client.holder, "this client has a secret key: open another client");
}

void describe(const std::vector<client::Port>& ports, std::uint32_t index, jali_port* out) {
  need(out, "out");
  require<InvalidArgument>(index < ports.size(), "there is no such input or output");
  const client::Port& port = ports[index];
  *out = {port.name.c_str(), port.layout.size(), static_cast<std::uint32_t>(port.shape.size()),
          port.shape.data()};
}

}  // namespace

extern "C" {

int jali_client_open(const uint8_t* manifest, size_t count, int min_security, uint32_t threads,
                     jali_client** out, jali_error* error) {
  return guarded(error, [&] {
    need(out, "out");
    *out = nullptr;
    require<InvalidArgument>(threads >= 1 && threads <= 1024, "threads must be 1 to 1024");
    wire::Limits limits;
    limits.min_security = min_security;
    auto made = std::make_unique<jali_client>();
    made->manifest = client::manifest_from_bytes(bytes_of(manifest, count), limits);
    made->program = client::fingerprint(made->manifest);
    made->ring = rlwe::make_host_ring(*made->manifest.params, static_cast<int>(threads));
    *out = made.release();
  });
}

void jali_client_close(jali_client* client) { delete client; }

int jali_client_make_secret(jali_client* client, jali_error* error) {
  return guarded(error, [&] {
    need(client, "client");
    need_no_secret(*client);
    adopt(*client, rlwe::KeyGenerator(client->manifest.params, client->ring).secret_key());
  });
}

int jali_client_read_secret(jali_client* client, const uint8_t* secret, size_t count,
                            jali_error* error) {
  return guarded(error, [&] {
    need(client, "client");
    need_no_secret(*client);
    adopt(*client,
          wire::secret_from_bytes(bytes_of(secret, count), client->manifest.params, *client->ring));
  });
}

int jali_client_write_secret(const jali_client* client, jali_sink sink, void* context,
                             jali_error* error) {
  return guarded(error, [&] {
    need(client, "client");
    const auto bytes = wire::secret_to_bytes(*client->with_secret().holder().key, *client->ring);
    sink_of(sink, context)(bytes);
  });
}

int jali_client_key_id(const jali_client* client, char out[33], jali_error* error) {
  return guarded(error, [&] {
    need(client, "client");
    need(out, "out");
    const std::string id = to_string(client->with_secret().holder().key->id());
    std::memcpy(out, id.c_str(), 33);
  });
}

uint32_t jali_client_inputs(const jali_client* client) {
  return client == nullptr ? 0 : static_cast<uint32_t>(client->manifest.inputs.size());
}

uint32_t jali_client_outputs(const jali_client* client) {
  return client == nullptr ? 0 : static_cast<uint32_t>(client->manifest.outputs.size());
}

int jali_client_input(const jali_client* client, uint32_t index, jali_port* out,
                      jali_error* error) {
  return guarded(error, [&] {
    need(client, "client");
    describe(client->manifest.inputs, index, out);
  });
}

int jali_client_output(const jali_client* client, uint32_t index, jali_port* out,
                       jali_error* error) {
  return guarded(error, [&] {
    need(client, "client");
    describe(client->manifest.outputs, index, out);
  });
}

void jali_client_fingerprint(const jali_client* client, uint8_t out[32]) {
  if (client != nullptr && out != nullptr) std::memcpy(out, client->program.data(), 32);
}

int jali_client_key_cost(const jali_client* client, jali_key_cost* out, jali_error* error) {
  return guarded(error, [&] {
    need(client, "client");
    need(out, "out");
    const auto& params = client->manifest.params;
    const auto cost =
        client::key_cost(*params, client::key_demand(params, client->manifest.demand));
    *out = {cost.count, cost.made, cost.sent, cost.seconds};
  });
}

int jali_client_keys(const jali_client* client, uint64_t max_bytes, jali_sink sink,
                     jali_progress progress, void* context, jali_error* error) {
  return guarded(error, [&] {
    need(client, "client");
    Progress told_progress;
    if (progress != nullptr) {
      told_progress = [=](std::size_t done, std::size_t total) {
        if (progress(context, done, total) != 0) throw Stopped();
      };
    }
    client->with_secret().make_keys(
        sink_of(sink, context), max_bytes, told_progress, std::nullopt,
        [](std::uint64_t bytes) { return "allow max_bytes = " + std::to_string(bytes); });
  });
}

int jali_client_encrypt(const jali_client* client, const jali_numbers* inputs, uint32_t count,
                        uint64_t examples, int single, jali_sink sink, void* context,
                        jali_error* error) {
  return guarded(error, [&] {
    need(client, "client");
    require<InvalidArgument>(inputs != nullptr || count == 0, "inputs must not be NULL");
    const wire::Sink out = sink_of(sink, context);
    std::vector<client::Examples> given;
    for (uint32_t k = 0; k < count; ++k) {
      require<InvalidArgument>(inputs[k].numbers != nullptr || inputs[k].count == 0,
                               "numbers must not be NULL unless there are none");
      given.push_back(
          {{inputs[k].numbers, static_cast<std::size_t>(inputs[k].count)}, examples, single != 0});
    }
    const client::Client& holder = client->with_secret();
    out(client::to_bytes(holder.encrypt(given)));
  });
}

int jali_client_decrypt(const jali_client* client, const uint8_t* reply, size_t count, int check,
                        jali_results** out, jali_error* error) {
  return guarded(error, [&] {
    need(client, "client");
    need(out, "out");
    *out = nullptr;
    const client::Client& holder = client->with_secret();
    const client::Message message =
        client::message_from_bytes(bytes_of(reply, count), holder.manifest(), holder.program(),
                                   client::Direction::reply, *client->ring);
    auto results = std::make_unique<jali_results>();
    results->outputs = holder.decrypt(message, check != 0 ? ckks::Check::yes : ckks::Check::no);
    results->examples = message.examples;
    results->single = message.single;
    *out = results.release();
  });
}

jali_numbers jali_results_output(const jali_results* results, uint32_t index) {
  if (results == nullptr || index >= results->outputs.size()) return {nullptr, 0};
  const auto& numbers = results->outputs[index];
  return {numbers.data(), numbers.size()};
}

uint64_t jali_results_examples(const jali_results* results) {
  return results == nullptr ? 0 : results->examples;
}

int jali_results_single(const jali_results* results) {
  return results != nullptr && results->single ? 1 : 0;
}

void jali_results_free(jali_results* results) { delete results; }

}  // extern "C"
