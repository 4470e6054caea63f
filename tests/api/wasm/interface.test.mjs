// Every function of client.h, the errors, what the module imports, and what stays in memory.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

import {
  Client, Code, FOLDER, JaliError, VECTORS, holds, inputsOf, keysOf, load, opened, read,
} from "./world.mjs";

const WASM = read(FOLDER, "jali.wasm");
const MODULE = new WebAssembly.Module(WASM);
const MANIFEST = read(VECTORS, "manifest.jali");
const NUMBERS = [Float64Array.of(0, 0.5, 1, -1.5, 2.5), Float64Array.of(0, 1, 2)];

const fails = (act, code, text) => assert.throws(act, (error) => {
  assert.ok(error instanceof JaliError, String(error));
  assert.equal(error.code, code, error.message);
  assert.match(error.message, text);
  return true;
});

test("the module imports these functions and no others", () => {
  assert.deepEqual(
    WebAssembly.Module.imports(MODULE).map((x) => `${x.module}.${x.name} ${x.kind}`).sort(),
    ["jali.bytes function", "jali.progress function",
      "wasi_snapshot_preview1.random_get function"]);
});

test("the module has at most 400 kB compressed", () => {
  const size = gzipSync(WASM, { level: 9 }).length;
  assert.ok(size <= 400_000, `${size} bytes`);
});

test("every function of client.h is exported, and jali.mjs calls each", async () => {
  const header = readFileSync(join(process.env.JALI_SOURCE, "src/jali/api/client.h"), "utf8");
  const text = header.replaceAll(/\/\*[^]*?\*\//g, "");
  const declared = [...text.matchAll(/^[a-z][^;{]*?\b(jali_\w+)\([^;]*;/gms)]
    .filter((x) => !x[0].startsWith("typedef")).map((x) => x[1]);
  assert.equal(declared.length, 19);
  const called = new Set();
  const wasm = await load(MODULE);
  wasm.c = Object.fromEntries(Object.entries(wasm.c).map(([name, x]) => [name,
    typeof x === "function" ? (...values) => { called.add(name); return x(...values); } : x]));
  for (const secret of [undefined, read(VECTORS, "secret_key.jali")]) {
    const client = await Client.open(MANIFEST, { minSecurity: 0, wasm });
    if (secret) client.readSecret(secret);
    else client.makeSecret();
    void [client.writeSecret(), client.keyId, client.inputs, client.outputs, client.fingerprint];
    void [client.keyCost(), keysOf(client), client.encrypt(NUMBERS)];
    if (secret) client.decrypt(read(VECTORS, "reply.jali"));
    client.close();
  }
  assert.deepEqual(declared.filter((name) => !called.has(name)), []);
});

test("errors have the codes of client.h and say what to change", async () => {
  const header = readFileSync(join(process.env.JALI_SOURCE, "src/jali/api/client.h"), "utf8");
  const codes = Object.fromEntries([...header.matchAll(/JALI_(\w+) = (\d+)/g)]
    .map((x) => [x[1], Number(x[2])]).filter(([name]) => name !== "OK"));
  assert.deepEqual({ ...Code }, codes);
  const refused = (bytes, options, code, text) => assert.rejects(Client.open(bytes, options),
    (error) => error instanceof JaliError && error.code === code && text.test(error.message));
  await refused(MANIFEST, {}, Code.INSECURE, /128/);
  await refused(new Uint8Array(), {}, Code.CORRUPT_DATA, /./);
  await refused("text", {}, Code.INVALID_ARGUMENT, /Uint8Array/);
  await refused(read(VECTORS, "reply.jali"), { minSecurity: 0 }, Code.CORRUPT_DATA, /manifest/);
  const damaged = MANIFEST.slice();
  damaged[200] ^= 1;
  await refused(damaged, { minSecurity: 0 }, Code.CORRUPT_DATA, /damaged/);

  const client = await Client.open(MANIFEST, { minSecurity: 0 });
  fails(() => client.encrypt(NUMBERS), Code.INVALID_ARGUMENT, /no secret key/);
  fails(() => client.keyId, Code.INVALID_ARGUMENT, /no secret key/);
  client.makeSecret();
  fails(() => client.makeSecret(), Code.INVALID_ARGUMENT, /has a secret key/);
  fails(() => client.encrypt([NUMBERS[0]]), Code.INVALID_ARGUMENT, /2 arrays/);
  fails(() => client.encrypt([[1, 2], NUMBERS[1]]), Code.INVALID_ARGUMENT, /Float64Array/);
  fails(() => client.encrypt([]), Code.INVALID_ARGUMENT, /2 arrays/);
  fails(() => client.encrypt([NUMBERS[0].slice(1), NUMBERS[1]]), Code.INVALID_ARGUMENT, /5 numbers/);
  fails(() => client.encrypt([Float64Array.of(0, 0.5, 2.75, 0, 0), NUMBERS[1]]),
    Code.INVALID_ARGUMENT, /x\[2\] of example 0/);
  fails(() => client.encrypt([Float64Array.of(0, NaN, 1, 0, 0), NUMBERS[1]]),
    Code.INVALID_ARGUMENT, /NaN/);
  const cost = client.keyCost();
  let given = 0;
  fails(() => client.keys(() => { given++; }, { maxBytes: cost.made - 1 }), Code.LIMIT_EXCEEDED,
    new RegExp(`allow maxBytes = ${cost.made}$`));
  assert.equal(given, 0);
  fails(() => client.keys(() => false), Code.STOPPED, /stop/);
  fails(() => client.keys(() => {}, { progress: () => false }), Code.STOPPED, /stop/);
  const mine = new Error("the disk is full");
  assert.throws(() => client.keys(() => { throw mine; }), (error) => error === mine);
  fails(() => client.decrypt(read(VECTORS, "reply.jali")), Code.KEY_MISMATCH, /./);
  fails(() => client.decrypt(client.encrypt(NUMBERS)), Code.INVALID_ARGUMENT, /./);
  client.close();
  client.close();
  for (const act of [() => client.keyId, () => client.encrypt(NUMBERS), () => client.inputs,
    () => client.keys(() => {}), () => client.makeSecret(), () => client.fingerprint]) {
    fails(act, Code.INVALID_ARGUMENT, /closed/);
  }
});

test("without entropy nothing is made", async () => {
  const own = Object.getOwnPropertyDescriptor(globalThis, "crypto");
  Object.defineProperty(globalThis, "crypto", { configurable: true, value: undefined });
  try {
    const client = await Client.open(MANIFEST, { minSecurity: 0, wasm: await load(MODULE) });
    fails(() => client.makeSecret(), Code.INTERNAL, /random/);
    client.close();
  } finally {
    Object.defineProperty(globalThis, "crypto", own);
  }
});

test("a thousand clients take no more memory than a few", async () => {
  const wasm = await load(MODULE);
  const secret = read(VECTORS, "secret_key.jali"), reply = read(VECTORS, "reply.jali");
  const round = async (k) => {
    const client = await Client.open(MANIFEST, { minSecurity: 0, wasm });
    client.readSecret(secret);
    if (k % 20 === 0) {
      client.encrypt(NUMBERS);
      client.decrypt(reply);
      keysOf(client);
    }
    try { client.encrypt([]); } catch { /* errors are freed, too */ }
    client.close();
    if (k % 20 === 1) {
      await assert.rejects(Client.open(MANIFEST.subarray(0, 500), { minSecurity: 0, wasm }));
    }
  };
  for (let k = 0; k < 40; ++k) await round(k);
  const before = wasm.c.memory.buffer.byteLength;
  for (let k = 0; k < 960; ++k) await round(k);
  assert.equal(wasm.c.memory.buffer.byteLength, before);
});

test("closed clients leave no secret in memory", async () => {
  const wasm = await load(MODULE);
  const memory = () => new Uint8Array(wasm.c.memory.buffer);
  const secret = read(VECTORS, "secret_key.jali");
  const kept = secret.subarray(64, secret.length - 16);  // the coefficients, two bits each
  const client = await Client.open(MANIFEST, { minSecurity: 0, wasm });
  // The coefficients as numbers of 64 bits, as the library holds them while it reads.
  const wide = new BigInt64Array(4 * kept.length);
  wide.forEach((_, k) => {
    const code = (kept[k >> 2] >> (2 * (k & 3))) & 3;
    wide[k] = BigInt(code & 1) - BigInt(code >> 1);
  });
  const long = new Uint8Array(wide.buffer);
  const inputs = [Float64Array.of(0.12345678, 0.87654321, 1.1111, -1.2222, 2.3333), NUMBERS[1]];
  const clear = new Uint8Array(inputs[0].buffer);
  const { outputs } = await (async () => {
    client.readSecret(secret);
    client.writeSecret();
    client.encrypt(inputs);
    keysOf(client);
    return client.decrypt(read(VECTORS, "reply.jali"));
  })();
  const results = new Uint8Array(outputs[1].buffer);
  wasm.with(kept.length, (at) => {  // what the search finds
    wasm.bytes(at, kept.length).set(kept);
    assert.ok(holds(memory(), kept));
  });
  for (const [name, bytes, window] of
    [["inputs", clear, 8], ["results", results, 8], ["file", kept, 8], ["coefficients", long, 128]]) {
    assert.ok(!holds(memory(), bytes, window), `${name}, before the client is closed`);
  }
  client.close();
  assert.ok(!holds(memory(), kept) && !holds(memory(), long, 128));
});

test("the secret is in no key, request or error", async () => {
  const client = await Client.open(read(VECTORS, "dense", "manifest.jali"));
  client.makeSecret();
  const secret = client.writeSecret();
  const kept = secret.subarray(64, secret.length - 16);
  const sent = [keysOf(client)];
  const text = [];
  const [low, high] = [0, 0.25];
  for (let k = 0; k < 5; ++k) {
    const numbers = client.inputs.map((port) =>
      Float64Array.from({ length: port.size }, () => low + (high - low) * Math.random()));
    try {
      sent.push(client.encrypt(numbers));
    } catch (error) {
      text.push(error.message);
    }
  }
  try { client.makeSecret(); } catch (error) { text.push(error.message); }
  try { client.decrypt(sent[1] ?? sent[0]); } catch (error) { text.push(error.message); }
  assert.ok(sent.length >= 2 && text.length >= 1, text.join("; "));
  assert.ok(holds(secret, kept));
  for (const bytes of [...sent, new TextEncoder().encode(text.join(""))]) {
    assert.ok(!holds(bytes, kept));
  }
  client.close();
});

test("after a trap nothing more is called, and the error says what to do", async () => {
  const wasm = await load(MODULE);
  const client = await Client.open(MANIFEST, { minSecurity: 0, wasm });
  const whole = wasm.c;
  wasm.c = { ...whole, jali_client_make_secret: () => { throw new WebAssembly.RuntimeError("x"); } };
  fails(() => client.makeSecret(), Code.INTERNAL, /load it again/);
  wasm.c = whole;
  fails(() => client.makeSecret(), Code.INTERNAL, /load it again/);
});

test("the options of one example and of several keep their shape", async () => {
  const client = await opened("");
  const several = inputsOf(client, new Float64Array(8 * 7), 7);
  assert.ok(client.encrypt(several).length > client.encrypt(NUMBERS, { single: true }).length);
  fails(() => client.encrypt(several, { single: true }), Code.INVALID_ARGUMENT, /example/);
  client.close();
});
