/* The client of a compiled program for other languages: a flat C interface. A program that uses it
 * links jali::client, which has no evaluator and no GPU code. It makes the secret key, the
 * program's public keys and requests, and decrypts replies.
 *
 * Every function returns JALI_OK or another code, and then says in `error`, unless that is NULL,
 * what is wrong and what to change. Nothing is printed, and no state is shared: clients may be used
 * from different threads, and one client from several unless a function says otherwise. Pointers to
 * `count` bytes or numbers may be NULL if count is 0. Bytes are those of docs/format.md. */
#ifndef JALI_API_CLIENT_H
#define JALI_API_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum jali_code {
  JALI_OK = 0,
  JALI_INVALID_ARGUMENT = 1, /* a value outside its documented range */
  JALI_INSECURE = 2, /* parameters below the requested security */
  JALI_RANGE_EXCEEDED = 5, /* numbers that may be larger than a level holds */
  JALI_WRONG_DECRYPTION = 6, /* a decryption that is not what its ciphertext says, or beyond the
                                range of the calibration */
  JALI_PARAMS_MISMATCH = 7, /* objects of different parameters */
  JALI_KEY_MISMATCH = 8, /* objects of different secret keys */
  JALI_CORRUPT_DATA = 10, /* bytes that are no well-formed object */
  JALI_VERSION = 11, /* bytes of a format that this build does not read */
  JALI_LIMIT_EXCEEDED = 12, /* more than was allowed */
  JALI_OUT_OF_MEMORY = 13,
  JALI_INTERNAL = 19, /* a broken invariant: please report */
  JALI_STOPPED = 20 /* a function of the caller's asked to stop */
};

struct jali_error {
  int32_t
      code; /* an enum jali_code, or another number of 1 to 20 for errors that clients seldom see */
  char text[1024]; /* UTF-8, ends with a zero */
};

/* What is known of an input or output. The pointers live as long as the client. */
struct jali_port {
  const char* name; /* UTF-8 without control characters */
  uint64_t size; /* numbers of one example */
  uint32_t axes;
  const uint64_t* shape;
};

struct jali_numbers {
  const double* numbers; /* examples, one after the other, each in C order */
  uint64_t count;
};

struct jali_key_cost {
  uint64_t count; /* of keys */
  uint64_t made; /* bytes in memory if all lie there; jali_client_keys takes those of one */
  uint64_t sent; /* bytes that jali_client_keys gives */
  double seconds; /* about the time to make them, with one thread */
};

/* Takes some bytes. Returns 0 to go on, anything else to stop. */
typedef int (*jali_sink)(void* context, const uint8_t* bytes, size_t count);
/* Called after each key with how many are made and how many there will be. Returns 0 to go on. */
typedef int (*jali_progress)(void* context, uint64_t done, uint64_t total);

typedef struct jali_client jali_client;
typedef struct jali_results jali_results;

/* A client from the bytes of a manifest. It has no secret key yet. min_security: what is demanded
 * of the parameters: 128, 192 or 256, or 0 for any, which is for tests. threads: at least 1. */
int jali_client_open(const uint8_t* manifest, size_t count, int min_security, uint32_t threads,
                     jali_client** out, struct jali_error* error);
/* Wipes the secret key. NULL is allowed. No function may use the client meanwhile or later. */
void jali_client_close(jali_client* client);

/* The secret key is made, or read from what jali_client_write_secret gave, once, before the
 * functions below are used. */
int jali_client_make_secret(jali_client* client, struct jali_error* error);
int jali_client_read_secret(jali_client* client, const uint8_t* secret, size_t count,
                            struct jali_error* error);
/* Whoever has these bytes can decrypt everything: the sink has to protect them. */
int jali_client_write_secret(const jali_client* client, jali_sink sink, void* context,
                             struct jali_error* error);
/* The name of the secret key: 32 hexadecimal digits and a zero. It is public. */
int jali_client_key_id(const jali_client* client, char out[33], struct jali_error* error);

uint32_t jali_client_inputs(const jali_client* client);
uint32_t jali_client_outputs(const jali_client* client);
int jali_client_input(const jali_client* client, uint32_t index, struct jali_port* out,
                      struct jali_error* error);
int jali_client_output(const jali_client* client, uint32_t index, struct jali_port* out,
                       struct jali_error* error);
/* SHA-256 of the manifest's bytes, by which client and server know the program. */
void jali_client_fingerprint(const jali_client* client, uint8_t out[32]);

/* What the program's keys cost, before any is made; and the keys, one by one. The server says which
 * keys it wants, and may want too many: JALI_LIMIT_EXCEEDED, before any is made, if they take more
 * than max_bytes of memory together. progress may be NULL. */
int jali_client_key_cost(const jali_client* client, struct jali_key_cost* out,
                         struct jali_error* error);
int jali_client_keys(const jali_client* client, uint64_t max_bytes, jali_sink sink,
                     jali_progress progress, void* context, struct jali_error* error);

/* The bytes of a request with `examples` examples of every input. single: whether the axis of the
 * batch is left out at decryption, for one example. JALI_INVALID_ARGUMENT, before anything is
 * encrypted, for numbers that are not finite or outside of the range for which the program was
 * calibrated. */
int jali_client_encrypt(const jali_client* client, const struct jali_numbers* inputs,
                        uint32_t count, uint64_t examples, int single, jali_sink sink,
                        void* context, struct jali_error* error);

/* The results in the bytes of a reply. check: 0 returns numbers all the same that are beyond the
 * range of the calibration, or are not what their ciphertext says; any other value refuses them
 * with JALI_WRONG_DECRYPTION. Do not tell an untrusted peer of that error. */
int jali_client_decrypt(const jali_client* client, const uint8_t* reply, size_t count, int check,
                        jali_results** out, struct jali_error* error);
/* The numbers of an output, example after example; count 0 if there is no such output. They live as
 * long as the results. */
struct jali_numbers jali_results_output(const jali_results* results, uint32_t index);
/* How many examples there are, and whether the axis of the batch was left out. */
uint64_t jali_results_examples(const jali_results* results);
int jali_results_single(const jali_results* results);
/* Wipes the numbers. NULL is allowed. */
void jali_results_free(jali_results* results);

#ifdef __cplusplus
}
#endif

#endif
