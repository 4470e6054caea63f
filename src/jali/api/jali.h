// The one header of the installed library: everything a program needs, from the errors up.
#pragma once

// IWYU pragma: begin_exports
#include "jali/api/threads.h"
#include "jali/base/error.h"
#include "jali/bootstrap/bootstrapper.h"
#include "jali/circuits/dft.h"
#include "jali/circuits/linear_transform.h"
#include "jali/circuits/matvec.h"
#include "jali/circuits/modular_reduction.h"
#include "jali/circuits/polynomial.h"
#include "jali/circuits/slot_sum.h"
#include "jali/ckks/auto_evaluator.h"
#include "jali/ckks/batcher.h"
#include "jali/ckks/encoder.h"
#include "jali/ckks/encryptor.h"
#include "jali/ckks/engine.h"
#include "jali/ckks/evaluator.h"
#include "jali/ckks/program.h"
#include "jali/ckks/release.h"
#include "jali/ckks/types.h"
#include "jali/params/ckks_params.h"
#include "jali/params/noise.h"
#include "jali/params/presets.h"
#include "jali/rlwe/keys.h"
#include "jali/wire/ckks.h"
#include "jali/wire/secret.h"
// IWYU pragma: end_exports
