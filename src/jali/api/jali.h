// The one header that a program includes: it has everything. A program that only computes on
// ciphertexts needs no more than jali/api/server.h.
#pragma once

// IWYU pragma: begin_exports
#include "jali/api/server.h"
#include "jali/bootstrap/secret/evaluation_keys.h"
#include "jali/client/secret/client.h"
#include "jali/lwe/secret/encrypt.h"
#include "jali/lwe/secret/key_generator.h"
#include "jali/lwe/secret/secret_key.h"
#include "jali/rlwe/secret/key_generator.h"
#include "jali/rlwe/secret/secret_key.h"
#include "jali/schemes/ckks/secret/decryptor.h"
#include "jali/schemes/ckks/secret/encryptor.h"
#include "jali/schemes/ckks/secret/release.h"
#include "jali/schemes/discrete/secret/decryptor.h"
#include "jali/schemes/discrete/secret/encryptor.h"
#include "jali/schemes/tfhe/secret/client.h"
#include "jali/schemes/tfhe/secret/encryptor.h"
#include "jali/wire/key_writer.h"
#include "jali/wire/secret/secret_key.h"
#include "jali/wire/secret/tfhe_secret_key.h"
// IWYU pragma: end_exports
