// The one error hierarchy: every failure of the library is an Error with a code and a sentence
// that says what to change.
#pragma once

#include <stdexcept>
#include <string>
#include <type_traits>

namespace jali {

enum class ErrorCode {
  invalid_argument,  // a value outside its documented range
  insecure,          // parameters below the requested security
  depth_exhausted,   // no level left for the operation
  scale_mismatch,    // operands whose scales cannot be brought together
  range_exceeded,    // numbers that may be larger than a level holds
  wrong_decryption,  // a decryption that is not what its ciphertext says
  params_mismatch,   // objects that belong to different parameters
  key_mismatch,      // objects that belong to different secret keys
  key_missing,       // an evaluation key that was not made
  corrupt_data,      // bytes that are not a well-formed object
  version,           // bytes of a format this build does not read
  limit_exceeded,    // an object larger than the declared limit
  out_of_memory,     // what was asked, what is free
  no_device,         // a device that is missing or not built in
  device_lost,       // a device that failed while it was in use
  launch_failed,     // a kernel that the device would not start
  unsupported,       // legal, but not on this backend
  file,              // a file that cannot be read or written
  internal           // a broken invariant: please report
};

/// Name of a code as shown to users, e.g. "depth_exhausted".
const char* error_code_name(ErrorCode code) noexcept;

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

// clang-format off
struct InvalidArgument : Error { explicit InvalidArgument(const std::string& m) : Error(ErrorCode::invalid_argument, m) {} };
struct InsecureParams  : Error { explicit InsecureParams (const std::string& m) : Error(ErrorCode::insecure, m) {} };
struct DepthExhausted  : Error { explicit DepthExhausted (const std::string& m) : Error(ErrorCode::depth_exhausted, m) {} };
struct ScaleMismatch   : Error { explicit ScaleMismatch  (const std::string& m) : Error(ErrorCode::scale_mismatch, m) {} };
struct RangeExceeded   : Error { explicit RangeExceeded  (const std::string& m) : Error(ErrorCode::range_exceeded, m) {} };
struct WrongDecryption : Error { explicit WrongDecryption(const std::string& m) : Error(ErrorCode::wrong_decryption, m) {} };
struct ParamsMismatch  : Error { explicit ParamsMismatch (const std::string& m) : Error(ErrorCode::params_mismatch, m) {} };
struct KeyMismatch     : Error { explicit KeyMismatch    (const std::string& m) : Error(ErrorCode::key_mismatch, m) {} };
struct KeyMissing      : Error { explicit KeyMissing     (const std::string& m) : Error(ErrorCode::key_missing, m) {} };
struct CorruptData     : Error { explicit CorruptData    (const std::string& m) : Error(ErrorCode::corrupt_data, m) {} };
struct VersionError    : Error { explicit VersionError   (const std::string& m) : Error(ErrorCode::version, m) {} };
struct LimitExceeded   : Error { explicit LimitExceeded  (const std::string& m) : Error(ErrorCode::limit_exceeded, m) {} };
struct OutOfMemory     : Error { explicit OutOfMemory    (const std::string& m) : Error(ErrorCode::out_of_memory, m) {} };
struct NoDevice        : Error { explicit NoDevice       (const std::string& m) : Error(ErrorCode::no_device, m) {} };
struct DeviceLost      : Error { explicit DeviceLost     (const std::string& m) : Error(ErrorCode::device_lost, m) {} };
struct LaunchFailed    : Error { explicit LaunchFailed   (const std::string& m) : Error(ErrorCode::launch_failed, m) {} };
struct Unsupported     : Error { explicit Unsupported    (const std::string& m) : Error(ErrorCode::unsupported, m) {} };
struct FileError       : Error { explicit FileError      (const std::string& m) : Error(ErrorCode::file, m) {} };
struct InternalError   : Error { explicit InternalError  (const std::string& m) : Error(ErrorCode::internal, m) {} };
// clang-format on

/// Throws E(message) unless the condition holds. A message that is a callable is called only if the
/// condition fails.
template <class E, class Message>
inline void require(bool condition, Message&& message) {
  if (!condition) [[unlikely]] {
    if constexpr (std::is_invocable_v<Message>) {
      throw E(message());
    } else {
      throw E(std::string(message));
    }
  }
}

}  // namespace jali
