#include "jali/lwe/secret/secret_key.h"

#include "jali/base/error.h"

namespace jali::lwe {

SecretKey::SecretKey(tfhe::ParamsPtr params, SecretBits small, SecretBits large, const KeyId& id)
    : params_(std::move(params)), small_(std::move(small)), large_(std::move(large)), id_(id) {
  require<InvalidArgument>(
      small_.size() == params_->n().value && large_.size() == params_->large().value,
      "a secret key has n small bits and k N large ones");
}

}  // namespace jali::lwe
