// How many threads a program uses when it does not say.
#pragma once

namespace jali {

/// JALI_NUM_THREADS, or the number of cores this process may use; from 1 to 1024. Throws
/// InvalidArgument when the variable holds anything but such a number.
int default_threads();

}  // namespace jali
