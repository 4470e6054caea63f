// What the C++ library and the client expect of a system, and WebAssembly lacks.
#ifdef __wasm__
#include <cstdlib>

// The tag of C++ exceptions, which throw and catch name.
asm(".globl __cpp_exception\n"
    ".tagtype __cpp_exception i32\n"
    "__cpp_exception:\n");

// Nothing is printed: an abort is a trap.
_LIBCPP_BEGIN_NAMESPACE_STD
void __libcpp_verbose_abort(const char*, ...) noexcept { std::abort(); }
_LIBCPP_END_NAMESPACE_STD

extern "C" {
[[noreturn]] void __abort_message(const char*, ...) { std::abort(); }

// There is no other thread to yield to, and there are no processes to fork.
int sched_yield() { return 0; }
int pthread_atfork(void (*)(), void (*)(), void (*)()) { return 0; }
}
#endif  // wasm
