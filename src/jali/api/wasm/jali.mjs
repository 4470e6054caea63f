// The client of a compiled program, for browsers and Node: it makes the secret key, the program's
// public keys and requests, and decrypts replies. jali.wasm beside this file does the work
// (docs/how-to/browser.md). One thread; a call returns when it is done, so call it in a worker.

/** The codes of errors, as in client.h. */
export const Code = Object.freeze({
  INVALID_ARGUMENT: 1, INSECURE: 2, RANGE_EXCEEDED: 5, WRONG_DECRYPTION: 6, PARAMS_MISMATCH: 7,
  KEY_MISMATCH: 8, CORRUPT_DATA: 10, VERSION: 11, LIMIT_EXCEEDED: 12, OUT_OF_MEMORY: 13,
  INTERNAL: 19, STOPPED: 20,
});

/** An error of Jali: its text says what to change; code is one of Code. */
export class JaliError extends Error {
  /** @param {number} code @param {string} text */
  constructor(code, text) {
    super(text);
    this.name = "JaliError";
    this.code = code;
  }
}

/**
 * @typedef {{name: string, size: number, shape: number[]}} Port numbers of one example, in C order
 * @typedef {{count: number, made: number, sent: number, seconds: number}} KeyCost keys; bytes in
 *   memory if all lie there; bytes that keys() gives; about the seconds to make them
 * @typedef {{examples: number, single: boolean, outputs: Float64Array[]}} Results
 */

const ERROR_BYTES = 1028;  // of struct jali_error; host.cpp checks this and the offsets below
const IO = 29;  // errno of WASI
const decoder = new TextDecoder();

/** One instance of jali.wasm, and its memory. */
class Instance {
  /** @param {WebAssembly.Module} module */
  constructor(module) {
    this.calls = new Map();  // what the functions of a call in progress do, by its context
    this.next = 1;
    this.broken = null;
    const imports = {
      wasi_snapshot_preview1: { random_get: (at, count) => this.entropy(at, count) },
      jali: {
        bytes: (context, at, count) =>
          this.told(context, (call) => call.sink(this.bytes(at, count).slice())),
        progress: (context, done, total) =>
          this.told(context, (call) => call.progress(Number(done), Number(total))),
      },
    };
    this.c = new WebAssembly.Instance(module, imports).exports;
    this.c._initialize();
    this.sink = this.c.jali_wasm_sink();
    this.progress = this.c.jali_wasm_progress();
  }

  bytes(at, count) { return new Uint8Array(this.c.memory.buffer, at >>> 0, count >>> 0); }
  view() { return new DataView(this.c.memory.buffer); }
  text(at) {
    const all = new Uint8Array(this.c.memory.buffer);
    return decoder.decode(all.subarray(at >>> 0, all.indexOf(0, at >>> 0)));
  }

  /** Fills memory from the system's entropy, which gives 64 KiB at a time. */
  entropy(at, count) {
    try {
      const out = this.bytes(at, count);
      for (let k = 0; k < out.length; k += 65536) {
        globalThis.crypto.getRandomValues(out.subarray(k, k + 65536));
      }
      return 0;
    } catch {
      return IO;
    }
  }

  /** Calls the caller's function. What it throws is thrown again when the library has stopped. */
  told(context, act) {
    const call = this.calls.get(context);
    try {
      return act(call) === false ? 1 : 0;
    } catch (error) {
      call.error = error;
      return 1;
    }
  }

  /** What act(place) returns, with `count` bytes of memory, which are wiped and freed afterwards. */
  with(count, act) {
    const at = this.c.malloc(Math.max(count, 1)) >>> 0;
    if (at === 0) throw new JaliError(Code.OUT_OF_MEMORY, "there is too little memory for this");
    try {
      this.bytes(at, count).fill(0);
      return act(at);
    } finally {
      this.bytes(at, count).fill(0);
      this.c.free(at);
    }
  }
  /** The same with a copy of these bytes. */
  withBytes(bytes, act) {
    if (!(bytes instanceof Uint8Array)) {
      throw new JaliError(Code.INVALID_ARGUMENT, "bytes are given as a Uint8Array");
    }
    return this.with(bytes.length, (at) => {
      this.bytes(at, bytes.length).set(bytes);
      return act(at, bytes.length);
    });
  }
  /** Calls a function of client.h, whose last argument is where it puts its error. */
  call(name, ...values) {
    if (this.broken) throw this.broken;
    return this.with(ERROR_BYTES, (at) => {
      let code;
      try {
        code = this.c[name](...values, at);
      } catch (error) {  // a trap: the stack ended, or the library has a fault
        this.broken = new JaliError(Code.INTERNAL,
          `jali.wasm stopped (${error.message}); load it again, and please report it`);
        throw this.broken;
      }
      if (code !== 0) throw new JaliError(code, this.text(at + 4));
    });
  }
  /** The same with functions of the caller: `name` takes their context after `values`. */
  callWith(functions, name, ...values) {
    const context = this.next++;
    const call = { ...functions };
    this.calls.set(context, call);
    try {
      this.call(name, ...values, context);
    } catch (error) {
      throw call.error ?? error;
    } finally {
      this.calls.delete(context);
    }
  }
  /** All the bytes that a function of client.h with a sink gives. */
  collected(name, ...values) {
    const chunks = [];
    this.callWith({ sink: (bytes) => { chunks.push(bytes); } }, name, ...values, this.sink);
    if (chunks.length === 1) return chunks[0];
    const all = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
    let place = 0;
    for (const chunk of chunks) {
      all.set(chunk, place);
      place += chunk.length;
      chunk.fill(0);
    }
    return all;
  }
}

/** @type {Promise<Instance> | undefined} */
let usual;

/**
 * Loads jali.wasm. Clients of one instance share its memory, which grows and never shrinks.
 * @param {WebAssembly.Module | BufferSource | URL | string} [source] a compiled module, its bytes
 *   or its address; jali.wasm beside this file if it is left out
 */
export async function load(source = new URL("jali.wasm", import.meta.url)) {
  if (source instanceof WebAssembly.Module) return new Instance(source);
  if (source instanceof URL || typeof source === "string") {
    const address = new URL(source, import.meta.url);
    source = address.protocol === "file:"
      ? await (await import("node:fs/promises")).readFile(address)
      : await (await fetched(address)).arrayBuffer();
  }
  return new Instance(await WebAssembly.compile(source));
}
async function fetched(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address} cannot be read: ${response.status}`);
  return response;
}

/** The owner of the data, who has a program's manifest and the secret key. */
export class Client {
  #wasm;
  #at;

  /** Use Client.open. */
  constructor(wasm, at) {
    this.#wasm = wasm;
    this.#at = at;
  }

  /**
   * A client from the bytes of a manifest. It has no secret key yet.
   * @param {Uint8Array} manifest
   * @param {{minSecurity?: number, wasm?: Instance}} [options] minSecurity: 128, 192 or 256; 0 for
   *   any, which is for tests. wasm: what load() gave.
   * @returns {Promise<Client>}
   */
  static async open(manifest, { minSecurity = 128, wasm } = {}) {
    wasm ??= await (usual ??= load());
    return wasm.with(4, (out) => wasm.withBytes(manifest, (at, count) => {
      wasm.call("jali_client_open", at, count, minSecurity, 1, out);
      return new Client(wasm, wasm.view().getUint32(out, true));
    }));
  }

  /** Wipes the secret key and frees the client, which cannot be used any more. */
  close() {
    if (this.#at) this.#wasm.c.jali_client_close(this.#at);
    this.#at = 0;
  }
  get #open() {
    if (!this.#at) throw new JaliError(Code.INVALID_ARGUMENT, "this client is closed: open another");
    return this.#at;
  }

  /** Makes the secret key, once. */
  makeSecret() { this.#wasm.call("jali_client_make_secret", this.#open); }
  /** Takes the secret key that writeSecret gave. @param {Uint8Array} secret */
  readSecret(secret) {
    const client = this.#open;
    this.#wasm.withBytes(secret, (at, count) =>
      this.#wasm.call("jali_client_read_secret", client, at, count));
  }
  /** Whoever has these bytes can decrypt everything: protect them, and overwrite them after use. */
  writeSecret() { return this.#wasm.collected("jali_client_write_secret", this.#open); }
  /** The public name of the secret key: 32 hexadecimal digits. */
  get keyId() {
    const client = this.#open, wasm = this.#wasm;
    return wasm.with(33, (at) => {
      wasm.call("jali_client_key_id", client, at);
      return wasm.text(at);
    });
  }

  /** @returns {Port[]} */
  get inputs() { return this.#ports("input"); }
  /** @returns {Port[]} */
  get outputs() { return this.#ports("output"); }
  #ports(kind) {
    const client = this.#open, wasm = this.#wasm;
    return Array.from({ length: wasm.c[`jali_client_${kind}s`](client) }, (_, k) =>
      wasm.with(24, (at) => {
        wasm.call(`jali_client_${kind}`, client, k, at);
        const view = wasm.view(), shape = view.getUint32(at + 20, true);
        return {
          name: wasm.text(view.getUint32(at, true)),
          size: Number(view.getBigUint64(at + 8, true)),
          shape: Array.from({ length: view.getUint32(at + 16, true) }, (_, axis) =>
            Number(view.getBigUint64(shape + 8 * axis, true))),
        };
      }));
  }
  /** SHA-256 of the manifest, by which client and server know the program, in hexadecimal. */
  get fingerprint() {
    const client = this.#open, wasm = this.#wasm;
    return wasm.with(32, (at) => {
      wasm.c.jali_client_fingerprint(client, at);
      return Array.from(wasm.bytes(at, 32), (x) => x.toString(16).padStart(2, "0")).join("");
    });
  }

  /** What the program's keys cost, before any is made. @returns {KeyCost} */
  keyCost() {
    const client = this.#open, wasm = this.#wasm;
    return wasm.with(32, (at) => {
      wasm.call("jali_client_key_cost", client, at);
      const view = wasm.view();
      const [count, made, sent] = [0, 8, 16].map((k) => Number(view.getBigUint64(at + k, true)));
      return { count, made, sent, seconds: view.getFloat64(at + 24, true) };
    });
  }
  /**
   * Makes the program's public keys, one after the other.
   * @param {(chunk: Uint8Array) => unknown} sink takes the bytes piece by piece; false ends it
   * @param {{maxBytes?: number, progress?: (done: number, total: number) => unknown}} [options]
   *   maxBytes: a limit for what a server asks: keys that take more memory together are refused
   *   before any is made. progress: called after each key; false ends it.
   */
  keys(sink, { maxBytes = 2 ** 31, progress } = {}) {
    const wasm = this.#wasm, client = this.#open;
    try {
      wasm.callWith({ sink, progress }, "jali_client_keys", client, BigInt(maxBytes), wasm.sink,
        progress ? wasm.progress : 0);
    } catch (error) {
      if (!(error instanceof JaliError) || error.code !== Code.LIMIT_EXCEEDED) throw error;
      throw new JaliError(error.code, error.message.replace("max_bytes", "maxBytes"));
    }
  }

  /**
   * The bytes of a request.
   * @param {Float64Array[]} inputs for each input all examples, one after the other
   * @param {{single?: boolean}} [options] single: one example without the axis of the batch
   * @returns {Uint8Array}
   */
  encrypt(inputs, { single = false } = {}) {
    const client = this.#open, wasm = this.#wasm;
    if (!Array.isArray(inputs) || !inputs.every((x) => x instanceof Float64Array)) {
      throw new JaliError(Code.INVALID_ARGUMENT, "inputs are an array of a Float64Array each");
    }
    const total = inputs.reduce((sum, x) => sum + x.length, 0);
    const size = inputs.length ? this.inputs[0].size : 1;
    const examples = inputs.length ? Math.ceil(inputs[0].length / size) : 0;
    return wasm.with(16 * inputs.length, (list) => wasm.with(8 * total, (numbers) => {
      let at = numbers;
      inputs.forEach((x, k) => {
        new Float64Array(wasm.c.memory.buffer, at, x.length).set(x);
        wasm.view().setUint32(list + 16 * k, at, true);
        wasm.view().setBigUint64(list + 16 * k + 8, BigInt(x.length), true);
        at += 8 * x.length;
      });
      return wasm.collected("jali_client_encrypt", client, list, inputs.length, BigInt(examples),
        single ? 1 : 0);
    }));
  }
  /**
   * The results in a reply.
   * @param {Uint8Array} reply
   * @param {{check?: boolean}} [options] check: false returns numbers all the same that are beyond
   *   the range of the calibration. Do not tell an untrusted peer of Code.WRONG_DECRYPTION.
   * @returns {Results}
   */
  decrypt(reply, { check = true } = {}) {
    const client = this.#open, wasm = this.#wasm;
    const results = wasm.with(4, (out) => wasm.withBytes(reply, (at, count) => {
      wasm.call("jali_client_decrypt", client, at, count, check ? 1 : 0, out);
      return wasm.view().getUint32(out, true);
    }));
    try {
      const outputs = wasm.with(16, (at) =>
        Array.from({ length: wasm.c.jali_client_outputs(client) }, (_, k) => {
          wasm.c.jali_results_output(at, results, k);
          const count = Number(wasm.view().getBigUint64(at + 8, true));
          const numbers = wasm.view().getUint32(at, true);
          return new Float64Array(wasm.c.memory.buffer, numbers, count).slice();
        }));
      return {
        examples: Number(wasm.c.jali_results_examples(results)),
        single: wasm.c.jali_results_single(results) !== 0,
        outputs,
      };
    } finally {
      wasm.c.jali_results_free(results);
    }
  }
}
