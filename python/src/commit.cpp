#include "commit.h"

#include "jali_commit.h"

namespace jali::python {

const char* commit() { return JALI_COMMIT; }

}  // namespace jali::python
