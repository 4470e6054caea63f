// Which secret key an object belongs to: a name that every scheme shares.
#pragma once

#include "jali/base/key_id.h"

namespace jali::rlwe {

using jali::agree;
using jali::common_key;
using jali::KeyId;
using jali::to_string;

}  // namespace jali::rlwe
