// What a server's program needs: all that computes on ciphertexts, and nothing that touches a secret key.
#pragma once

// IWYU pragma: begin_exports
#include "jali/api/threads.h"
#include "jali/base/error.h"
#include "jali/bootstrap/bootstrapper.h"
#include "jali/bootstrap/failure.h"
#include "jali/circuits/dft.h"
#include "jali/circuits/linear_transform.h"
#include "jali/circuits/matvec.h"
#include "jali/circuits/modular_reduction.h"
#include "jali/circuits/polynomial.h"
#include "jali/circuits/slot_sum.h"
#include "jali/ckks/auto_evaluator.h"
#include "jali/ckks/batcher.h"
#include "jali/ckks/bounds.h"
#include "jali/ckks/encoder.h"
#include "jali/ckks/encryptor.h"
#include "jali/ckks/engine.h"
#include "jali/ckks/evaluator.h"
#include "jali/ckks/program.h"
#include "jali/ckks/types.h"
#include "jali/params/ckks_params.h"
#include "jali/params/noise.h"
#include "jali/params/presets.h"
#include "jali/rlwe/keys.h"
#include "jali/wire/ckks.h"
// IWYU pragma: end_exports
