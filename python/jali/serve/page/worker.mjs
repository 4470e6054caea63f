// The worker of the page: it alone has the secret key, in the memory of jali.wasm. It makes keys,
// encrypts and decrypts, and talks to the service. The page calls it by messages {id, call, values}
// and is answered {id, result} or {id, error}; {step} and {progress} tell how far it is.
import { Refused, Service } from "./service.mjs";
import { clientWords, sentence } from "./words.mjs";

const SAMPLE = 96 * 96;  // bytes that the page draws
const LARGEST_KEYS = 512 << 20;  // bytes in memory

let jali;  // the module jali.mjs
let client, service, program;
let stored = false;  // whether the service has the keys
let abort = new AbortController();

const now = () => performance.now();

/** Does a step and tells the page of it: where it is done, its time, and the bytes up and down. */
async function step(name, where, act) {
  const [began, up, down] = [now(), service?.up ?? 0, service?.down ?? 0];
  const more = await act();
  postMessage({ step: { name, where, ms: now() - began, up: (service?.up ?? 0) - up,
    down: (service?.down ?? 0) - down, ...more?.told } });
  return more?.result ?? more;
}

const calls = {
  /** Lists the programs. */
  async programs({ token }) {
    service = new Service({ token });
    return service.programs();
  },

  /** Makes a client of a program, and its secret key. */
  async open({ fingerprint }) {
    if (stored) await service.forget(client.keyId).catch(() => {});  // those of another program
    client?.close();
    [client, stored, program] = [undefined, false, fingerprint];
    let wasm;
    await step("Load the client", "page", async () => {
      performance.clearResourceTimings();
      jali ??= await loaded();
      wasm = await jali.load();
      const files = performance.getEntriesByType("resource");
      return { told: { down: files.reduce((sum, one) => sum + one.transferSize, 0) } };
    });
    const manifest = await step("Get the program's manifest", "wire", () =>
      service.manifest(fingerprint));
    await step("Make the secret key", "page", async () => {
      const made = await jali.Client.open(manifest, { wasm });
      if (made.fingerprint !== fingerprint) {
        made.close();
        throw new Error("The service sent the manifest of another program: load this page again.");
      }
      made.makeSecret();
      client = made;
    });
    return { inputs: client.inputs, outputs: client.outputs, cost: client.keyCost(),
      keyId: client.keyId };
  },

  /** Makes the keys with which the service computes, and sends them. */
  async keys() {
    abort = new AbortController();
    const chunks = [];
    await step("Make the keys for the service", "page", async () => {
      client.keys((chunk) => { chunks.push(chunk); }, {
        maxBytes: LARGEST_KEYS,
        progress: (done, total) => postMessage({ progress: { what: "made", done, total } }),
      });
    });
    await step("Send the keys", "wire", async () => {
      const name = await service.upload(program, new Blob(chunks), {
        signal: abort.signal,
        progress: (done, total) => postMessage({ progress: { what: "sent", done, total } }),
      });
      if (name !== client.keyId) {
        throw new Error("The service calls the keys by another name: load this page again.");
      }
    });
    stored = true;
  },

  /** Encrypts numbers, has the service compute with them, and decrypts the answer. */
  async run({ inputs }) {
    abort = new AbortController();
    let request;
    await step("Encrypt", "page", async () => {
      try {
        request = client.encrypt(inputs, { single: true });
      } finally {
        inputs.forEach((x) => x.fill(0));
      }
    });
    postMessage({ sent: { bytes: request.length, sample: sampled(request) } });
    if (!stored) await calls.keys();
    const ask = () => step("Compute on ciphertexts", "service", async () => {
      const result = await service.run(program, client.keyId, request, { signal: abort.signal });
      return { result, told: { timing: result.timing } };
    });
    let answer;
    try {
      answer = await ask();
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 428) throw error;
      await calls.keys();  // the service has them no more
      answer = await ask();
    }
    const { reply } = answer;
    postMessage({ received: { bytes: reply.length, sample: sampled(reply) } });
    // If this fails, the service is not told: it could learn of the secret key from that.
    return step("Decrypt", "page", async () => client.decrypt(reply).outputs);
  },

  /** Has the service delete the keys. */
  async forget({ all }) {
    stored = false;
    await service.forget(all ? "" : client.keyId);
  },
};

/** jali.mjs, or the service's own words of why it is not there. */
async function loaded() {
  const address = new URL("client/jali.mjs", import.meta.url);
  try {
    return await import(address);
  } catch (error) {
    await service.patient("GET", address.pathname);
    throw error;
  }
}

/** Bytes behind the head of an object, which says its kind and its parameters. */
function sampled(bytes) {
  const from = Math.min(512, Math.max(0, bytes.length - SAMPLE));
  return bytes.slice(from, from + SAMPLE);
}

/** An error as the page shows it. */
function told(error) {
  if (error?.name === "AbortError") return { kind: "cancelled", text: "Cancelled." };
  if (error instanceof Refused) {
    return { kind: error.kind, status: error.status, text: sentence(error.message) };
  }
  if (error instanceof WebAssembly.CompileError || error instanceof WebAssembly.LinkError) {
    return { kind: "browser", text: "This browser cannot run the client: it needs WebAssembly with vectors and exceptions, as Chrome 95, Firefox 100 and Safari 16.4 have it, and later ones." };
  }
  if (jali && error instanceof jali.JaliError) {
    return { kind: "client", text: sentence(clientWords(error.code, error.message, jali.Code)) };
  }
  return { kind: "other", text: sentence(error?.message ?? String(error)) };
}

let last = Promise.resolve();  // calls are done one after the other
onmessage = ({ data: { id, call, values } }) => {
  if (call === "cancel") {
    abort.abort();
    return;
  }
  last = last.then(async () => {
    try {
      postMessage({ id, result: await calls[call](values ?? {}) });
    } catch (error) {
      postMessage({ id, error: told(error) });
    }
  });
};
