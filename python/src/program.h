// What the binding of compiled programs shares with that of the secret key's holder.
#pragma once

#include <memory>
#include <utility>

#include "binding.h"
#include "jali/client/secret/client.h"

namespace jali::python {

/// A manifest, which need not be checked, its fingerprint, and a ring for the ciphertexts of its
/// messages.
struct ProgramManifest {
  explicit ProgramManifest(client::Manifest from)
      : ptr(std::make_shared<const client::Manifest>(std::move(from))),
        fingerprint(client::fingerprint(*ptr)),
        params(ptr->params) {}

  std::shared_ptr<const client::Manifest> ptr;
  Digest fingerprint;
  Params params;
};

struct ProgramClient {
  std::shared_ptr<const client::Client> ptr;
};

}  // namespace jali::python
