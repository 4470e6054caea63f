// Bytes of an attacker are refused with a code, and never end in a trap: what reads sizes of 64 bits
// runs here where memory has 32.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, Code, JaliError, Seeded, VECTORS, load, opened, read, sealed } from "./world.mjs";

const MANIFEST = read(VECTORS, "manifest.jali");
const REPLY = read(VECTORS, "reply.jali");
// Errors that a text of a server may cause; none of them is a fault of the library.
const MAY = new Set([Code.INVALID_ARGUMENT, Code.INSECURE, Code.RANGE_EXCEEDED, Code.WRONG_DECRYPTION,
  Code.PARAMS_MISMATCH, Code.KEY_MISMATCH, Code.CORRUPT_DATA, Code.VERSION, Code.LIMIT_EXCEEDED,
  Code.OUT_OF_MEMORY]);

/** Sizes at the edges of 8, 16, 32 and 64 bits. */
const EDGES = [0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1].map(BigInt)
  .concat([1n << 32n, (1n << 32n) + 16n, (1n << 61n) + 1n, (1n << 63n) - 1n, (1n << 64n) - 1n]);

/** Bytes as an attacker changes them: cut, lengthened, with other bytes or other sizes. */
function changed(bytes, random, from) {
  const out = new Uint8Array(bytes);
  const place = () => from + random.below(Math.max(1, out.length - from));
  switch (random.below(5)) {
    case 0: return out.slice(0, random.below(out.length + 1));
    case 1: return sealed(out.slice(0, 64 + random.below(out.length - 63)));
    case 2: {
      const more = new Uint8Array(out.length + 1 + random.below(64));
      more.set(out);
      return sealed(more);
    }
    case 3:
      for (let k = random.below(4); k >= 0; --k) out[place()] = random.below(256);
      return sealed(out);
    default: {
      const size = [1, 2, 4, 8][random.below(4)], edge = EDGES[random.below(EDGES.length)];
      const at = Math.min(place(), out.length - size);
      for (let k = 0; k < size; ++k) out[at + k] = Number((edge >> BigInt(8 * k)) & 255n);
      return random.below(4) === 0 ? out : sealed(out);
    }
  }
}

function refused(error) {
  assert.ok(error instanceof JaliError, String(error.stack ?? error));
  assert.ok(MAY.has(error.code), `${error.code}: ${error.message}`);
  assert.ok(error.message.length > 10 && !error.message.includes("\0"), error.message);
}

test("changed manifests are refused, or are manifests", async () => {
  const wasm = await load(), random = new Seeded(1), counts = {};
  for (const manifest of [MANIFEST, read(VECTORS, "several", "manifest.jali")]) {
    for (let k = 0; k < 2000; ++k) {
      // Most of the bytes of the parameters belong to a hash: the fields behind them have their share.
      const bytes = changed(manifest, random, k % 3 === 0 ? 0 : 48 + random.below(400));
      let client;
      try {
        client = await Client.open(bytes, { minSecurity: 0, wasm });
      } catch (error) {
        refused(error);
        counts[error.code] = (counts[error.code] ?? 0) + 1;
        continue;
      }
      counts.read = (counts.read ?? 0) + 1;
      try {
        void [client.inputs, client.outputs, client.keyCost(), client.fingerprint];
      } catch (error) {
        refused(error);
      }
      client.close();
    }
  }
  assert.ok(counts[Code.CORRUPT_DATA] > 1000 && counts.read > 10, JSON.stringify(counts));
});

test("changed replies and secret keys are refused, or are replies and keys", async () => {
  const random = new Seeded(2), counts = {};
  const client = await opened("");
  for (let k = 0; k < 2000; ++k) {
    const bytes = changed(REPLY, random, k % 2 === 0 ? 0 : 48);
    try {
      client.decrypt(bytes, { check: k % 4 < 2 });
      counts.read = (counts.read ?? 0) + 1;
    } catch (error) {
      refused(error);
      counts[error.code] = (counts[error.code] ?? 0) + 1;
    }
  }
  assert.ok(counts[Code.CORRUPT_DATA] > 500, JSON.stringify(counts));
  const secret = read(VECTORS, "secret_key.jali");
  for (let k = 0; k < 300; ++k) {
    const other = await Client.open(MANIFEST, { minSecurity: 0 });
    try {
      other.readSecret(changed(secret, random, 48));
    } catch (error) {
      refused(error);
    }
    other.close();
  }
  // The client is as it was.
  assert.equal(client.decrypt(REPLY).examples, 6);
  client.close();
});

test("every prefix of a manifest is refused", async () => {
  const wasm = await load();
  for (let count = 0; count < MANIFEST.length; ++count) {
    for (const bytes of [MANIFEST.slice(0, count), sealed(MANIFEST.slice(0, count))]) {
      await assert.rejects(Client.open(bytes, { minSecurity: 0, wasm }), (error) => {
        refused(error);
        return true;
      });
    }
  }
});

// The slots of so many examples have more bytes than 32 bits count.
test("examples for more memory than there is are refused, and nothing is lost", async () => {
  const wasm = await load();
  const client = await Client.open(read(VECTORS, "digits", "manifest.jali"), { wasm });
  client.makeSecret();
  const few = client.encrypt([new Float64Array(2 * 64)]);
  assert.throws(() => client.encrypt([new Float64Array(40000 * 64)]), (error) => {
    refused(error);
    return error.code === Code.OUT_OF_MEMORY && /fewer/.test(error.message);
  });
  assert.ok(wasm.c.memory.buffer.byteLength < 2 ** 28);
  assert.equal(client.encrypt([new Float64Array(2 * 64)]).length, few.length);
  client.close();
});
