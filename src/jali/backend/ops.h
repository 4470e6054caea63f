// The narrow waist as a whole: every computation on residues that the layers above need, in tables of
// operations by layer, and the engines that implement them. For engines and tests; a caller includes the table
// that it needs.
#pragma once

#include "jali/backend/config.h"
#include "jali/backend/embedding_ops.h"
#include "jali/backend/engine.h"
#include "jali/backend/engines.h"
#include "jali/backend/ring_ops.h"
#include "jali/backend/rlwe_ops.h"
#include "jali/backend/view.h"
