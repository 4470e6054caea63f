// The native side of the tests of jali.wasm (tests/api/wasm/*.mjs). Usage:
//   wasm_peer manifest FOLDER           writes manifest.jali: a small program, insecure
//   wasm_peer answer FOLDER             reads what a client wrote there: manifest.jali,
//   secret_key.jali, keys.jali,
//                                       request.jali, and inputs.f64, the numbers in the request,
//                                       input after input; checks all of it, computes with the
//                                       keys, and writes reply.jali and results.f64, the numbers in
//                                       the reply, output after output
//   wasm_peer seeded FOLDER SEED COUNT  writes native_secret_key.jali, native_keys.jali and
//   native_request.jali, of
//                                       COUNT examples, as a client makes them whose entropy
//                                       follows from SEED
//   wasm_peer decrypt FOLDER            prints the results in reply.jali, one a line, in full
//   wasm_peer times FOLDER ROUNDS       prints the least processor time of what a client does with
//   the files that seeded and
//                                       answer left, as JSON (bench/wasm.py)
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "../../client/support.h"
#include "../../seeds/entropy.h"
#include "jali/api/client.h"
#include "jali/client/key_cost.h"
#include "jali/client/secret/client.h"
#include "jali/schemes/ckks/secret/decryption.h"
#include "jali/wire/keys.h"

namespace {

using namespace jali;

wire::Bytes content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path + " cannot be read");
  return {std::istreambuf_iterator<char>(in), {}};
}

void save(const std::string& path, const void* bytes, std::size_t count) {
  std::ofstream out(path, std::ios::binary);
  out.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(count));
}

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

std::vector<double> doubles(const wire::Bytes& bytes) {
  std::vector<double> out(bytes.size() / sizeof(double));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(double));
  return out;
}

/// Numbers that every input of the manifest takes, different from example to example.
std::vector<std::vector<double>> numbers_for(const std::vector<client::Port>& ports,
                                             std::size_t examples) {
  std::vector<std::vector<double>> out;
  for (const client::Port& port : ports) {
    std::vector<double> numbers(examples * port.size());
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      const std::size_t i = k % port.size();
      const double part = static_cast<double>((7 * k + 3) % 16) / 16;
      numbers[k] = port.low[i] + part * (port.high[i] - port.low[i]);
    }
    out.push_back(std::move(numbers));
  }
  return out;
}

struct Folder {
  std::string path;
  client::Manifest manifest;
  std::shared_ptr<const ring::Ring> ring;
  client::Holder holder;

  explicit Folder(std::string from)
      : path(std::move(from)),
        manifest(
            client::manifest_from_bytes(content(path + "/manifest.jali"), testing::kAnySecurity)),
        ring(ckks::make_ring(*manifest.params)),
        holder(client::hold(manifest.params, ring,
                            std::make_shared<const rlwe::SecretKey>(wire::secret_from_bytes(
                                content(path + "/secret_key.jali"), manifest.params, *ring)))) {}

  std::vector<std::complex<double>> decrypted(const ckks::Ciphertext& x) const {
    return ckks::decrypt(*holder.decryptor, *holder.encoder, x);
  }
};

/// The numbers of a request are those that the client encrypted.
void check_request(const Folder& f, const client::Message& request,
                   const std::vector<double>& expected) {
  const std::size_t lanes = f.manifest.lanes, slots = f.manifest.params->slots();
  std::size_t at = 0;
  for (std::size_t k = 0; k < f.manifest.inputs.size(); ++k) {
    const client::Port& port = f.manifest.inputs[k];
    const auto& ciphertexts = request.arrays[k];
    const std::size_t chunks = ciphertexts[0]->batch();
    std::vector<double> all(ciphertexts.size() * chunks * slots);
    for (std::size_t c = 0; c < ciphertexts.size(); ++c) {
      const auto values = f.decrypted(*ciphertexts[c]);
      for (std::size_t i = 0; i < values.size(); ++i) {
        all[c * chunks * slots + i] = values[i].real();
      }
    }
    std::vector<double> numbers(port.size());
    for (std::size_t e = 0; e < request.examples; ++e) {
      client::unpack(port.layout, std::span<const double>(all).subspan(e / lanes * slots),
                     chunks * slots, lanes, e % lanes, numbers);
      for (std::size_t i = 0; i < numbers.size(); ++i, ++at) {
        const double x = numbers[i] * port.radius[i] + port.centre[i];
        expect(std::fabs(x - expected.at(at)) < 1e-4,
               port.name + ": the request holds another number");
      }
    }
  }
  expect(at == expected.size(), "the request has another count of numbers");
}

/// A server computes with every key, and gets what it should.
void check_keys(const Folder& f, const wire::Bytes& bytes, const ckks::Ciphertext& x) {
  std::span<const std::uint8_t> in(bytes);
  const wire::CheckedKeys checked =
      wire::check_keys(testing::memory_source(in), *f.manifest.params, *f.ring);
  expect(in.empty() && checked.key_id == f.holder.key->id(), "the keys are another client's");
  const auto keys = std::make_shared<const rlwe::EvaluationKeys>(
      wire::from_bytes<rlwe::EvaluationKeys>(bytes, f.manifest.params, *f.ring));
  const ckks::Evaluator server(f.manifest.params, f.ring, keys);
  const auto before = f.decrypted(x);
  const std::size_t slots = f.manifest.params->slots();
  for (const auto& [step, level] : f.manifest.demand.rotations) {
    const auto after = f.decrypted(server.rotate(server.drop_to(x, level), step));
    double worst = 0;
    for (std::size_t k = 0; k < after.size(); ++k) {
      const std::size_t row = k / slots * slots;
      const auto from =
          static_cast<std::size_t>(static_cast<std::int64_t>(k % slots + slots) + step);
      worst = std::max(worst, std::abs(after[k] - before[row + from % slots]));
    }
    expect(worst < 1e-3,
           "the rotation by " + std::to_string(step) + " is off by " + std::to_string(worst));
  }
  const int level = f.manifest.demand.product;
  if (level > 0) {
    const auto y = server.drop_to(x, level);
    const auto after = f.decrypted(server.multiply_relinearise_rescale(y, y));
    for (std::size_t k = 0; k < after.size(); ++k) {
      expect(std::abs(after[k] - before[k] * before[k]) < 1e-3, "a product is wrong");
    }
  }
}

void answer(const std::string& path) {
  const Folder f(path);
  const client::Message request = client::message_from_bytes(
      content(path + "/request.jali"), f.manifest, client::fingerprint(f.manifest),
      client::Direction::request, *f.ring);
  check_request(f, request, doubles(content(path + "/inputs.f64")));
  check_keys(f, content(path + "/keys.jali"), *request.arrays[0][0]);
  const auto outputs = numbers_for(f.manifest.outputs, request.examples);
  const auto reply = client::to_bytes(
      testing::reply_with(f.manifest, f.holder, outputs, request.examples, request.single));
  save(path + "/reply.jali", reply.data(), reply.size());
  std::vector<double> all;
  for (const auto& numbers : outputs) all.insert(all.end(), numbers.begin(), numbers.end());
  save(path + "/results.f64", all.data(), all.size() * sizeof(double));
}

int keep(void* context, const std::uint8_t* bytes, std::size_t count) {
  auto& out = *static_cast<wire::Bytes*>(context);
  out.insert(out.end(), bytes, bytes + count);
  return 0;
}

void seeded(const std::string& path, std::uint64_t seed, std::size_t examples) {
  const wire::Bytes manifest = content(path + "/manifest.jali");
  const auto ports = client::manifest_from_bytes(manifest, testing::kAnySecurity).inputs;
  const auto numbers = numbers_for(ports, examples);
  std::vector<jali_numbers> inputs;
  for (const auto& x : numbers) inputs.push_back({x.data(), x.size()});
  jali_test_seed_entropy(seed);
  jali_client* client = nullptr;
  jali_error error;
  wire::Bytes secret, keys, request;
  const bool done =
      jali_client_open(manifest.data(), manifest.size(), 0, 1, &client, &error) == 0 &&
      jali_client_make_secret(client, &error) == 0 &&
      jali_client_write_secret(client, keep, &secret, &error) == 0 &&
      jali_client_keys(client, 1 << 30, keep, nullptr, &keys, &error) == 0 &&
      jali_client_encrypt(client, inputs.data(), static_cast<std::uint32_t>(inputs.size()),
                          examples, 0, keep, &request, &error) == 0;
  jali_client_close(client);
  expect(done, error.text);
  save(path + "/native_secret_key.jali", secret.data(), secret.size());
  save(path + "/native_keys.jali", keys.data(), keys.size());
  save(path + "/native_request.jali", request.data(), request.size());
  std::vector<double> all;
  for (const auto& x : numbers) all.insert(all.end(), x.begin(), x.end());
  save(path + "/inputs.f64", all.data(), all.size() * sizeof(double));
}

void decrypt(const std::string& path) {
  const Folder f(path);
  const client::Client client(f.manifest, f.holder);
  const auto results = client.decrypt(
      client::message_from_bytes(content(path + "/reply.jali"), f.manifest, client.program(),
                                 client::Direction::reply, *f.ring));
  for (const auto& output : results) {
    for (const double x : output) std::printf("%.17g\n", x);
  }
}

/// The least processor time of a call, in seconds.
template <class Call>
double least(int rounds, const Call& call) {
  double out = 1e9;
  for (int k = 0; k < rounds; ++k) {
    const std::clock_t start = std::clock();
    expect(call() == 0, "a function of client.h failed");
    const double taken = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    out = std::min(out, taken);
  }
  return out;
}

int drop(void*, const std::uint8_t*, std::size_t) { return 0; }

void times(const std::string& path, int rounds) {
  const wire::Bytes manifest = content(path + "/manifest.jali");
  const wire::Bytes secret = content(path + "/secret_key.jali");
  const wire::Bytes reply = content(path + "/reply.jali");
  const std::vector<double> numbers = doubles(content(path + "/inputs.f64"));
  jali_client* client = nullptr;
  const auto open = [&] {
    jali_client_close(client);
    return jali_client_open(manifest.data(), manifest.size(), 128, 1, &client, nullptr) ||
           jali_client_read_secret(client, secret.data(), secret.size(), nullptr);
  };
  const double opened = least(rounds, open);
  std::vector<jali_numbers> inputs;
  std::uint64_t at = 0;
  for (std::uint32_t k = 0; k < jali_client_inputs(client); ++k) {
    jali_port port;
    expect(jali_client_input(client, k, &port, nullptr) == 0, "no input");
    inputs.push_back({numbers.data() + at, port.size});
    at += port.size;
  }
  jali_key_cost cost;
  expect(jali_client_key_cost(client, &cost, nullptr) == 0, "no cost");
  const double keys = least(
      rounds, [&] { return jali_client_keys(client, cost.made, drop, nullptr, nullptr, nullptr); });
  const double encrypt = least(20 * rounds, [&] {
    return jali_client_encrypt(client, inputs.data(), static_cast<std::uint32_t>(inputs.size()), 1,
                               0, drop, nullptr, nullptr);
  });
  const double decrypt = least(20 * rounds, [&] {
    jali_results* results = nullptr;
    const int code = jali_client_decrypt(client, reply.data(), reply.size(), 1, &results, nullptr);
    jali_results_free(results);
    return code;
  });
  jali_client_close(client);
  std::printf(
      "{\"open\": %.6f, \"keys\": %.6f, \"encrypt\": %.6f, \"decrypt\": %.6f, "
      "\"key_bytes\": %llu}\n",
      opened, keys, encrypt, decrypt, static_cast<unsigned long long>(cost.sent));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 2 ? argv[1] : "";
  try {
    if (command == "manifest" && argc == 3) {
      const auto params = ckks::Params::create(testing::small_literal(Word::w52, 40, 2));
      const auto bytes = client::to_bytes(testing::small_manifest(params));
      save(std::string(argv[2]) + "/manifest.jali", bytes.data(), bytes.size());
    } else if (command == "answer" && argc == 3) {
      answer(argv[2]);
    } else if (command == "seeded" && argc == 5) {
      seeded(argv[2], std::strtoull(argv[3], nullptr, 0), std::strtoull(argv[4], nullptr, 0));
    } else if (command == "decrypt" && argc == 3) {
      decrypt(argv[2]);
    } else if (command == "times" && argc == 4) {
      times(argv[2], std::atoi(argv[3]));
    } else {
      std::cerr << "usage: wasm_peer manifest|answer|decrypt FOLDER, times FOLDER ROUNDS, or "
                   "seeded FOLDER SEED COUNT\n";
      return 2;
    }
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
    return 1;
  }
  return 0;
}
