// jali.wasm and the native library read each other's bytes, keys and ciphertexts.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";

import {
  Client, VECTORS, inFolder, inputsOf, keysOf, native, numbers, opened, read, withSeed, write,
} from "./world.mjs";

const near = (got, expected, off) => {
  assert.equal(got.length, expected.length);
  got.forEach((x, k) => assert.ok(Math.abs(x - expected[k]) <= off, `${k}: ${x}, ${expected[k]}`));
};
const joined = (outputs) => outputs.flatMap((x) => Array.from(x));

for (const folder of ["dense", "several"]) {
  test(`replies of compiled programs have their results: ${folder}`, async () => {
    const client = await opened(folder, { minSecurity: 128 });
    const { outputs } = client.decrypt(read(VECTORS, folder, "reply.jali"));
    // Equal but for the roundings of another library's sines.
    near(joined(outputs), Array.from(numbers(VECTORS, folder, "results.f64")), 1e-12);
    const there = native("decrypt", join(VECTORS, folder)).trim().split("\n").map(Number);
    near(joined(outputs), there, 1e-12);
    client.close();
  });
}

test("the manifest, secret key and reply of the vectors are read", async () => {
  const client = await opened("");
  assert.deepEqual(client.inputs.map(({ name, size, shape }) => [name, size, shape]),
    [["x", 5, [5]], ["größe", 3, [3]]]);
  assert.deepEqual(client.outputs.map((port) => port.name), ["y", "z"]);
  assert.match(client.fingerprint, /^[0-9a-f]{64}$/);
  assert.deepEqual(client.writeSecret(), read(VECTORS, "secret_key.jali"));
  const { examples, single, outputs } = client.decrypt(read(VECTORS, "reply.jali"));
  assert.deepEqual([examples, single], [6, false]);
  near(outputs[0], Array.from({ length: 6 * 18 }, (_, k) => (k % 18) / 36), 1e-5);
  near(outputs[1], Array.from({ length: 6 }, (_, k) => 0.25 * k - 1), 1e-5);
  client.close();
});

// The client's secret key, keys and request go to a native server, which computes with each key,
// and its reply comes back.
for (const [folder, single] of [["", false], ["", true], ["dense", false], ["several", false],
  ["digits", true]]) {
  test(`a native server answers: ${folder || "small"}${single ? ", one example" : ""}`, () =>
    inFolder(async (there) => {
      const manifest = read(VECTORS, folder, "manifest.jali");
      write(manifest, there, "manifest.jali");
      const examples = single ? 1 : 3;
      native("seeded", there, 1, examples);  // for the numbers of inputs.f64
      const all = numbers(there, "inputs.f64");
      const client = await Client.open(manifest, { minSecurity: 0 });
      client.makeSecret();
      write(client.writeSecret(), there, "secret_key.jali");
      const cost = client.keyCost(), told = [];
      const keys = keysOf(client, { progress: (done, total) => { told.push([done, total]); } });
      assert.equal(keys.length, cost.sent);
      assert.deepEqual(told, Array.from({ length: cost.count }, (_, k) => [k + 1, cost.count]));
      write(keys, there, "keys.jali");
      write(client.encrypt(inputsOf(client, all, examples), { single }), there, "request.jali");
      native("answer", there);
      const reply = read(there, "reply.jali"), results = client.decrypt(reply);
      assert.deepEqual([results.examples, results.single], [examples, single]);
      near(joined(results.outputs), Array.from(numbers(there, "results.f64")), 1e-3);
      const printed = native("decrypt", there).trim().split("\n").map(Number);
      near(joined(results.outputs), printed, 1e-9);
      const again = await Client.open(manifest, { minSecurity: 0 });
      again.readSecret(read(there, "secret_key.jali"));
      assert.equal(again.keyId, client.keyId);
      assert.deepEqual(again.decrypt(reply), results);
      again.close();
      client.close();
    }));
}

// From the same entropy, the same bytes: every number of a key and of a ciphertext is an integer,
// and the inputs are coded alike.
for (const [folder, examples] of [["", 3], ["dense", 2], ["digits", 2]]) {
  test(`the same entropy gives the same bytes: ${folder || "small"}`, () =>
    inFolder(async (there) => {
      const manifest = read(VECTORS, folder, "manifest.jali");
      write(manifest, there, "manifest.jali");
      native("seeded", there, 2026, examples);
      const all = numbers(there, "inputs.f64");
      await withSeed(2026, async () => {
        const client = await Client.open(manifest, { minSecurity: 0 });
        client.makeSecret();
        assert.deepEqual(client.writeSecret(), read(there, "native_secret_key.jali"));
        assert.deepEqual(keysOf(client), read(there, "native_keys.jali"));
        const request = client.encrypt(inputsOf(client, all, examples));
        assert.deepEqual(request, read(there, "native_request.jali"));
        client.close();
      });
    }));
}
