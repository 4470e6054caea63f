// What the service answers over HTTP (docs/reference/http.md): programs, uploads of keys that go on
// after a cut, requests. It knows no secret. Nothing here touches the document, so that Node tests it.

/** The service refused. kind: of its problem; after: seconds after which to try again, or null. */
export class Refused extends Error {
  constructor(status, kind, detail, { after = null, offset = null, members = {} } = {}) {
    super(detail);
    this.name = "Refused";
    Object.assign(this, { status, kind, after, offset, members });
  }
}
/** The service cannot be reached. */
export class Unreachable extends Error {
  constructor() {
    super("The service cannot be reached: check the connection, and whether it runs.");
    this.name = "Unreachable";
  }
}

export const PIECE = 1 << 20;  // bytes of keys in a request
const TRIES = 8;  // without progress
const LONGEST_WAIT = 120;  // seconds for a service that is busy, together
const waits = (tries) => Math.min(0.25 * 2 ** tries, 8);

const seconds = (text) => (/^\d+$/.test(text ?? "") ? Number(text) : null);

export class Service {
  /**
   * @param {{token?: string, fetch?: typeof fetch, sleep?: (seconds: number) => Promise<void>,
   *   random?: (bytes: Uint8Array) => Uint8Array}} [options] what tests replace
   */
  constructor({ token = "", fetch, sleep, random } = {}) {
    this.token = token;
    this.fetch = fetch ?? ((...values) => globalThis.fetch(...values));
    this.sleep = sleep ?? ((s) => new Promise((done) => { setTimeout(done, 1000 * s); }));
    this.random = random ?? ((bytes) => globalThis.crypto.getRandomValues(bytes));
    this.up = 0;  // bytes of bodies
    this.down = 0;
  }

  /** One request. Throws Refused, Unreachable, and AbortError if the signal ends it. */
  async request(method, path, { headers = {}, body, signal } = {}) {
    if (this.token) headers = { ...headers, Authorization: `Bearer ${this.token}` };
    let response, data;
    try {
      response = await this.fetch(path, { method, headers, body, signal, cache: "no-store",
        credentials: "same-origin", redirect: "error" });
      data = method === "HEAD" ? new Uint8Array() : new Uint8Array(await response.arrayBuffer());
    } catch (error) {
      if (error?.name === "AbortError") throw error;
      throw new Unreachable();
    }
    this.up += body?.size ?? body?.length ?? 0;
    this.down += data.length;
    if (response.ok) return { status: response.status, headers: response.headers, data };
    throw refusal(response, data);
  }
  /** The same, again while the service is busy or cannot be reached. */
  async patient(method, path, options = {}) {
    let waited = 0;
    for (let tries = 0; ; ++tries) {
      try {
        return await this.request(method, path, options);
      } catch (error) {
        const wait = error instanceof Unreachable ? waits(tries) : again(error);
        waited += wait ?? 0;
        if (wait === null || waited > LONGEST_WAIT || tries >= TRIES) throw error;
        await this.sleep(wait);
        options.signal?.throwIfAborted();
      }
    }
  }
  async json(path) {
    return JSON.parse(new TextDecoder().decode((await this.patient("GET", path)).data));
  }

  /** The programs, with what the page must know of them. */
  async programs() { return (await this.json("/page/programs")).programs; }
  /** The bytes of a manifest. */
  async manifest(program) {
    return (await this.patient("GET", `/v1/programs/${program}/manifest`)).data;
  }

  /**
   * Sends keys, piece by piece, and goes on where a cut left it.
   * @param {string} program the fingerprint
   * @param {Blob} keys
   * @param {{progress?: (sent: number, total: number) => void, signal?: AbortSignal}} [options]
   * @returns {Promise<string>} the name of the keys
   */
  async upload(program, keys, { progress, signal } = {}) {
    const begin = async () => {
      const begun = await this.patient("POST", `/v1/programs/${program}/uploads`,
        { headers: { "Upload-Complete": "?0", "Upload-Length": String(keys.size) }, signal });
      return begun.headers.get("Location");
    };
    let [place, offset, failures, begins] = [await begin(), 0, 0, 1];
    for (;;) {
      progress?.(offset, keys.size);
      try {
        const answer = await this.request("PATCH", place, {
          headers: {
            "Content-Type": "application/partial-upload",
            "Upload-Offset": String(offset),
            "Upload-Complete": offset + PIECE >= keys.size ? "?1" : "?0",
          },
          body: keys.slice(offset, offset + PIECE),
          signal,
        });
        const name = answer.headers.get("Jali-Key");
        if (name) {
          progress?.(keys.size, keys.size);
          return name;
        }
        offset = where(answer.headers, offset);
        failures = 0;
      } catch (error) {
        if (error instanceof Refused && error.offset !== null && error.status === 409) {
          offset = error.offset;
        } else if (!(error instanceof Unreachable) && again(error) === null && error.status !== 409
          && error.status !== 410) {
          throw error;
        }
        if (++failures >= TRIES) throw error;
        await this.sleep(again(error) ?? waits(failures));
        signal?.throwIfAborted();
        try {
          const found = await this.patient("HEAD", place, { signal });
          const name = found.headers.get("Jali-Key");
          if (name) return name;
          offset = where(found.headers, offset);
        } catch (gone) {
          if (!(gone instanceof Refused) || ![404, 410].includes(gone.status)) throw gone;
          if (++begins > 3) throw gone;
          [place, offset] = [await begin(), 0];
        }
      }
    }
  }

  /** Deletes keys. @param {string} key their name, or "" for all that the client has */
  async forget(key) {
    try {
      await this.patient("DELETE", key ? `/v1/keys/${key}` : "/v1/keys");
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 404) throw error;
    }
  }

  /**
   * Has a request computed, once, however often it must be sent.
   * @returns {Promise<{reply: Uint8Array, timing: Record<string, number>}>} timing: milliseconds
   */
  async run(program, key, request, { signal } = {}) {
    const name = Array.from(this.random(new Uint8Array(16)), (x) => x.toString(16).padStart(2, "0"));
    const answer = await this.patient("POST", `/v1/programs/${program}/run`, {
      headers: {
        "Content-Type": "application/octet-stream",
        "Jali-Key": key,
        "Idempotency-Key": `"${name.join("")}"`,
      },
      body: request,
      signal,
    });
    return { reply: answer.data, timing: timings(answer.headers.get("Server-Timing")) };
  }
}

/** The durations of Server-Timing by their names. */
export function timings(text) {
  return Object.fromEntries([...(text ?? "").matchAll(/([\w-]+);dur=([\d.]+)/g)]
    .map(([, name, ms]) => [name, Number(ms)]));
}

function where(headers, otherwise) { return seconds(headers.get("Upload-Offset")) ?? otherwise; }

/** After how many seconds an error may be gone; null if it stays. */
function again(error) {
  if (!(error instanceof Refused) || ![408, 429, 503].includes(error.status)) return null;
  return error.after === null ? 1 : Math.max(error.after, 0.25);
}

function refusal(response, data) {
  let problem = {};
  try {
    problem = JSON.parse(new TextDecoder().decode(data));
  } catch { /* HEAD has no document, and proxies have others */ }
  const kind = String(problem.type ?? "").split(/[#:]/).at(-1);
  const detail = typeof problem.detail === "string" ? problem.detail
    : `the service answered ${response.status}`;
  return new Refused(response.status, kind, detail, {
    after: seconds(response.headers.get("Retry-After")),
    offset: seconds(response.headers.get("Upload-Offset")),
    members: problem,
  });
}
