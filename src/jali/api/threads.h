// The default number of threads.
#pragma once

namespace jali {

/// The value of JALI_NUM_THREADS or, if that is not set, the number of cores that this process may
/// use; from 1 to 1024. Throws InvalidArgument if the variable holds anything but such a number.
int default_threads();

}  // namespace jali
