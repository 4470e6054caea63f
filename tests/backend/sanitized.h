// Whether this is a build with sanitizers.
#pragma once

namespace jali::backend::test {

/// Sanitizers make the oracle ten times slower, so the tests then use only the shapes that are
/// needed to reach all code.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace jali::backend::test
