/* The program of a client in C. It reads vectors/client, whose reply has known numbers
 * (tests/client/support.h). client_symbols.cmake reads the symbols of this program. Usage: client
 * FOLDER */
#include "jali/api/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct jali_error error;

static void expect(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "%s: code %d, \"%s\"\n", what, (int)error.code, error.text);
  exit(1);
}

struct bytes {
  uint8_t* data;
  size_t count;
};

static struct bytes read_file(const char* folder, const char* name) {
  char path[4096];
  struct bytes out = {NULL, 0};
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE* file = fopen(path, "rb");
  expect(file != NULL, path);
  for (;;) {
    out.data = realloc(out.data, out.count + 65536);
    expect(out.data != NULL, "memory");
    const size_t got = fread(out.data + out.count, 1, 65536, file);
    if (got == 0) break;
    out.count += got;
  }
  fclose(file);
  return out;
}

static int count_bytes(void* context, const uint8_t* bytes, size_t count) {
  (void)bytes;
  *(uint64_t*)context += count;
  return 0;
}

static int keep(void* context, const uint8_t* bytes, size_t count) {
  struct bytes* out = context;
  out->data = realloc(out->data, out->count + count);
  expect(out->data != NULL, "memory");
  memcpy(out->data + out->count, bytes, count);
  out->count += count;
  return 0;
}

static int stop(void* context, const uint8_t* bytes, size_t count) {
  (void)context, (void)bytes, (void)count;
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  struct bytes manifest = read_file(argv[1], "manifest.jali");
  const struct bytes secret = read_file(argv[1], "secret_key.jali");
  const struct bytes reply = read_file(argv[1], "reply.jali");

  jali_client* client = NULL;
  expect(jali_client_open(manifest.data, manifest.count, 128, 1, &client, &error) == JALI_INSECURE,
         "insecure parameters are refused");
  expect(client == NULL, "a client that was not opened");
  manifest.data[200] ^= 1;
  expect(
      jali_client_open(manifest.data, manifest.count, 0, 1, &client, &error) == JALI_CORRUPT_DATA,
      "a damaged manifest is refused");
  manifest.data[200] ^= 1;
  expect(jali_client_open(NULL, 10, 0, 1, &client, &error) == JALI_INVALID_ARGUMENT, "no bytes");
  expect(jali_client_open(manifest.data, manifest.count, 0, 1, NULL, NULL) == JALI_INVALID_ARGUMENT,
         "nowhere to put the client");
  expect(jali_client_open(manifest.data, manifest.count, 0, 1, &client, &error) == JALI_OK, "open");

  jali_results* results = NULL;
  expect(jali_client_decrypt(client, reply.data, reply.count, 1, &results, &error) ==
             JALI_INVALID_ARGUMENT,
         "a client without a secret key decrypts nothing");
  expect(strstr(error.text, "jali_client_make_secret") != NULL, "the error says what to call");
  expect(jali_client_read_secret(client, secret.data, secret.count, &error) == JALI_OK, "secret");
  expect(jali_client_make_secret(client, &error) == JALI_INVALID_ARGUMENT, "a second secret key");
  char id[33];
  expect(jali_client_key_id(client, id, &error) == JALI_OK && strlen(id) == 32, "the key's name");
  struct bytes kept = {NULL, 0};
  expect(jali_client_write_secret(client, keep, &kept, &error) == JALI_OK, "write the secret");
  expect(kept.count == secret.count && memcmp(kept.data, secret.data, kept.count) == 0,
         "the secret that was read");

  struct jali_port port;
  expect(jali_client_inputs(client) == 2 && jali_client_outputs(client) == 2, "ports");
  expect(jali_client_output(client, 0, &port, &error) == JALI_OK && port.size == 18 &&
             port.axes == 1 && port.shape[0] == 18 && strcmp(port.name, "y") == 0,
         "the first output");
  expect(jali_client_input(client, 2, &port, &error) == JALI_INVALID_ARGUMENT, "a third input");

  expect(jali_client_decrypt(client, reply.data, reply.count, 1, &results, &error) == JALI_OK,
         "decrypt");
  expect(jali_results_examples(results) == 6 && !jali_results_single(results), "six examples");
  const struct jali_numbers y = jali_results_output(results, 0),
                            z = jali_results_output(results, 1);
  expect(y.count == 6 * 18 && z.count == 6 && jali_results_output(results, 2).count == 0, "counts");
  for (int k = 0; k < 6 * 18; ++k) {
    const double off = y.numbers[k] - (k % 18) / 36.0;
    expect(off < 1e-5 && off > -1e-5, "a number of y");
  }
  for (int k = 0; k < 6; ++k) {
    const double off = z.numbers[k] - (0.25 * k - 1);
    expect(off < 1e-5 && off > -1e-5, "a number of z");
  }
  jali_results_free(results);
  jali_results_free(NULL);

  struct jali_key_cost cost;
  uint64_t sent = 0;
  expect(jali_client_key_cost(client, &cost, &error) == JALI_OK && cost.count == 4, "key cost");
  expect(jali_client_keys(client, cost.made - 1, count_bytes, NULL, &sent, &error) ==
                 JALI_LIMIT_EXCEEDED &&
             sent == 0,
         "too many keys are refused before any is made");
  const char* advice = strstr(error.text, "allow max_bytes = ");
  expect(advice != NULL && strtoull(advice + strlen("allow max_bytes = "), NULL, 10) == cost.made &&
             strstr(error.text, "evaluation_keys") == NULL,
         "the text says how a program in C allows them");
  expect(jali_client_keys(client, cost.made, count_bytes, NULL, &sent, &error) == JALI_OK &&
             sent == cost.sent,
         "keys");
  expect(jali_client_keys(client, cost.made, stop, NULL, NULL, &error) == JALI_STOPPED, "stop");

  double x[10] = {0, 0.5, 1, -1.5, 2.5, 0, 0, 0, 0, 0};
  const double g[6] = {0, 1, 2, 0, 1, 2};
  const struct jali_numbers inputs[2] = {{x, 10}, {g, 6}};
  struct bytes request = {NULL, 0};
  expect(jali_client_encrypt(client, inputs, 2, 2, 0, keep, &request, &error) == JALI_OK &&
             request.count > 1000,
         "encrypt");
  expect(jali_client_decrypt(client, request.data, request.count, 1, &results, &error) ==
                 JALI_INVALID_ARGUMENT &&
             results == NULL,
         "a request is no reply");
  request.count = 0;
  x[7] = 2.75;
  expect(jali_client_encrypt(client, inputs, 2, 2, 0, keep, &request, &error) ==
                 JALI_INVALID_ARGUMENT &&
             request.count == 0 && strstr(error.text, "x[2] of example 1") != NULL,
         "a number outside of the range");
  expect(
      jali_client_encrypt(client, inputs, 1, 2, 0, keep, &request, &error) == JALI_INVALID_ARGUMENT,
      "an input is missing");

  jali_client* stranger = NULL;
  expect(jali_client_open(manifest.data, manifest.count, 0, 2, &stranger, &error) == JALI_OK &&
             jali_client_make_secret(stranger, &error) == JALI_OK,
         "another client");
  expect(jali_client_decrypt(stranger, reply.data, reply.count, 1, &results, &error) ==
             JALI_KEY_MISMATCH,
         "the reply to another client");
  jali_client_close(stranger);
  jali_client_close(client);
  jali_client_close(NULL);
  free(manifest.data), free(secret.data), free(reply.data), free(kept.data), free(request.data);
  puts("ok");
  return 0;
}
