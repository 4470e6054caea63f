#include "jali/base/error.h"

namespace jali {

const char* error_code_name(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::insecure: return "insecure";
    case ErrorCode::depth_exhausted: return "depth_exhausted";
    case ErrorCode::scale_mismatch: return "scale_mismatch";
    case ErrorCode::range_exceeded: return "range_exceeded";
    case ErrorCode::wrong_decryption: return "wrong_decryption";
    case ErrorCode::params_mismatch: return "params_mismatch";
    case ErrorCode::key_mismatch: return "key_mismatch";
    case ErrorCode::key_missing: return "key_missing";
    case ErrorCode::corrupt_data: return "corrupt_data";
    case ErrorCode::version: return "version";
    case ErrorCode::limit_exceeded: return "limit_exceeded";
    case ErrorCode::out_of_memory: return "out_of_memory";
    case ErrorCode::no_device: return "no_device";
    case ErrorCode::device_lost: return "device_lost";
    case ErrorCode::launch_failed: return "launch_failed";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::internal: return "internal";
  }
  return "unknown";
}

}  // namespace jali
