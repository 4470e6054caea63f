// What the tests of jali.wasm share: the module, the vectors, and the native side (peer.cpp). The
// environment says where they lie (tests/tools/test_wasm.py).
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

export const FOLDER = process.env.JALI_WASM;  // with jali.mjs and jali.wasm
export const VECTORS = join(process.env.JALI_VECTORS, "client");
export const { Client, Code, JaliError, load } = await import(
  pathToFileURL(join(FOLDER, "jali.mjs")).href);

/** A file of bytes. */
export const read = (...path) => new Uint8Array(readFileSync(join(...path)));
export const write = (bytes, ...path) => writeFileSync(join(...path), bytes);
/** A file of numbers. */
export function numbers(...path) {
  const bytes = read(...path);
  return new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}
/** The numbers, cut into pieces of these lengths. */
export function pieces(all, lengths) {
  let at = 0;
  return lengths.map((n) => all.slice(at, (at += n)));
}
export const inputsOf = (client, all, examples) =>
  pieces(all, client.inputs.map((port) => port.size * examples));

/** Runs the native side. */
export const native = (...words) =>
  execFileSync(process.env.JALI_PEER, words.map(String), { encoding: "utf8" });

/** Calls act with a new folder, which is removed afterwards. */
export async function inFolder(act) {
  const folder = mkdtempSync(join(tmpdir(), "jali-wasm-"));
  try {
    return await act(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** An opened client of a folder of vectors/client; with its secret key unless that is "none". */
export async function opened(folder, options = {}) {
  const client = await Client.open(read(VECTORS, folder, "manifest.jali"),
    { minSecurity: 0, ...options });
  client.readSecret(read(VECTORS, folder, "secret_key.jali"));
  return client;
}

/** All the bytes of a client's keys. */
export function keysOf(client, options) {
  const chunks = [];
  client.keys((chunk) => { chunks.push(chunk); }, options);
  return new Uint8Array(Buffer.concat(chunks));
}

/** The bytes of an object whose frame has the right length and checksum again (wire/frame.h). */
export function sealed(bytes) {
  const out = new Uint8Array(bytes);
  if (out.length < 64) return out;
  new DataView(out.buffer).setBigUint64(40, BigInt(out.length - 64), true);
  const digest = createHash("sha256").update(out.subarray(0, out.length - 16)).digest();
  out.set(digest.subarray(0, 16), out.length - 16);
  return out;
}

/** SplitMix64, as tests/seeds/entropy.cpp has it: numbers that follow from a seed. */
export class Seeded {
  constructor(seed) { this.state = BigInt(seed); }
  next() {
    const mask = (1n << 64n) - 1n;
    this.state = (this.state + 0x9e3779b97f4a7c15n) & mask;
    let z = this.state;
    z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
    z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & mask;
    return z ^ (z >> 31n);
  }
  below(n) { return Number(this.next() % BigInt(n)); }
  fill(out) {
    const word = new Uint8Array(8), view = new DataView(word.buffer);
    for (let at = 0; at < out.length; at += 8) {
      view.setBigUint64(0, this.next(), true);
      out.set(word.subarray(0, Math.min(8, out.length - at)), at);
    }
    return out;
  }
}

/** Calls act while the system's entropy follows from a seed. */
export async function withSeed(seed, act) {
  const own = Object.getOwnPropertyDescriptor(globalThis, "crypto");
  const source = new Seeded(seed);
  Object.defineProperty(globalThis, "crypto", {
    configurable: true, value: { getRandomValues: (out) => source.fill(out) },
  });
  try {
    return await act();
  } finally {
    Object.defineProperty(globalThis, "crypto", own);
  }
}

/** Whether `bytes` hold one of the windows of 8 bytes of `secret`. */
export function holds(bytes, secret, window = 8) {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let k = 0; k + window <= secret.length; k += window) {
    if (all.includes(secret.subarray(k, k + window))) return true;
  }
  return false;
}
