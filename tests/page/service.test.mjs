// What the page asks of the service, and how it goes on after cuts.
import assert from "node:assert/strict";
import { test } from "node:test";

import { PIECE, Refused, Service, Unreachable, timings } from "../../python/jali/serve/page/service.mjs";

/** A service that keeps uploads as docs/reference/http.md says. cut(n): what goes wrong with the
 * n-th request: "before" it came, or "after" it was done, but before its answer was. */
function world({ cut = () => null, refusal = () => null } = {}) {
  const state = { requests: [], uploads: new Map(), slept: [], kept: null };
  const answer = (status, headers = {}, body = "") => new Response(
    [204, 304].includes(status) ? null : body, { status, headers });
  const problem = (status, kind, headers = {}) => answer(status, headers,
    JSON.stringify({ type: `tag:jali,2026:${kind}`, status, detail: `it is ${kind}` }));
  async function handled(method, path, headers, body) {
    const told = refusal(state.requests.length, method, path);
    if (told) return problem(...told);
    const bytes = new Uint8Array(body instanceof Blob ? await body.arrayBuffer() : body ?? []);
    if (method === "POST" && path.endsWith("/uploads")) {
      const place = `/v1/uploads/u${state.uploads.size}`;
      state.uploads.set(place, { length: Number(headers["Upload-Length"]), data: new Uint8Array() });
      return answer(201, { Location: place });
    }
    if (path.startsWith("/v1/uploads/")) {
      const upload = state.uploads.get(path);
      if (!upload) return problem(404, "no-upload");
      const fields = () => ({ "Upload-Offset": String(upload.data.length),
        ...(upload.done ? { "Jali-Key": "k".repeat(32) } : {}) });
      if (method === "HEAD") return answer(204, fields());
      if (upload.done) return problem(410, "completed-upload");
      if (Number(headers["Upload-Offset"]) !== upload.data.length) {
        return problem(409, "mismatching-upload-offset", fields());
      }
      upload.data = Uint8Array.from(Buffer.concat([upload.data, bytes]));
      if (headers["Upload-Complete"] === "?1") {
        upload.done = true;
        state.kept = upload.data;
        return answer(200, fields(), "{}");
      }
      return answer(204, fields());
    }
    if (path.endsWith("/run")) return answer(200, { "Server-Timing": "queue;dur=1.5, compute;dur=20" }, bytes);
    return answer(200, {}, bytes);
  }
  async function fetch(path, { method, headers, body, signal }) {
    signal?.throwIfAborted();
    const n = state.requests.length;
    state.requests.push({ method, path, headers });
    if (cut(n, method) === "before") throw new TypeError("Failed to fetch");
    const found = await handled(method, path, headers, body);
    if (cut(n, method) === "after") throw new TypeError("Failed to fetch");
    return found;
  }
  const service = new Service({ fetch, token: "t",
    sleep: async (s) => { state.slept.push(s); }, random: (x) => x.fill(7) });
  return { state, service };
}
const KEYS = Uint8Array.from({ length: 3 * PIECE + 1000 }, (_, k) => (k * 2654435761) >>> 24);
const same = (a, b) => assert.ok(a !== null && Buffer.compare(Buffer.from(a), Buffer.from(b)) === 0);

test("keys are sent in pieces, with progress, and bytes are counted", async () => {
  const { state, service } = world();
  const told = [];
  assert.equal(await service.upload("f", new Blob([KEYS]), { progress: (sent, all) => { told.push([sent, all]); } }),
    "k".repeat(32));
  same(state.kept, KEYS);
  assert.equal(service.up, KEYS.length);
  assert.deepEqual(told.map((x) => x[0]), [0, PIECE, 2 * PIECE, 3 * PIECE, KEYS.length]);
  assert.ok(state.requests.every((x) => x.headers.Authorization === "Bearer t"));
  assert.equal(state.requests[0].headers["Upload-Length"], String(KEYS.length));
});

test("an upload that is cut anywhere goes on", async () => {
  for (const when of ["before", "after"]) {
    for (let n = 0; n < 8; ++n) {
      const { state, service } = world({ cut: (k) => (k === n ? when : null) });
      await service.upload("f", new Blob([KEYS]));
      same(state.kept, KEYS);
    }
  }
  const { state, service } = world({ cut: (k) => (k % 3 === 1 ? (k % 2 ? "before" : "after") : null) });
  await service.upload("f", new Blob([KEYS]));
  same(state.kept, KEYS);
});

test("an upload of which the service knows nothing any more is begun again", async () => {
  let dropped = false;
  const { state, service } = world({ cut: (k) => {
    if (k === 3 && !dropped) {
      dropped = true;
      state.uploads.delete("/v1/uploads/u0");
      return "before";
    }
    return null;
  } });
  await service.upload("f", new Blob([KEYS]));
  same(state.kept, KEYS);
});

test("a service that cannot be reached is given up, and damaged keys are not repeated", async () => {
  const gone = world({ cut: () => "before" });
  await assert.rejects(gone.service.upload("f", new Blob([KEYS])), Unreachable);
  assert.ok(gone.state.requests.length < 20);
  const damaged = world({ refusal: (n, method) => (method === "PATCH" ? [422, "corrupt_data"] : null) });
  await assert.rejects(damaged.service.upload("f", new Blob([KEYS])), (error) =>
    error instanceof Refused && error.status === 422 && error.kind === "corrupt_data" && error.message === "it is corrupt_data");
  assert.equal(damaged.state.requests.filter((x) => x.method === "PATCH").length, 1);
  const full = world({ refusal: () => [507, "quota"] });
  await assert.rejects(full.service.upload("f", new Blob([KEYS])), (error) => error.kind === "quota");
  assert.equal(full.state.requests.length, 1);
});

test("a request has one name however often it is sent, and waits as long as it is told", async () => {
  const { state, service } = world({ cut: (n) => (n === 0 ? "before" : n === 1 ? "after" : null) });
  const { reply, timing } = await service.run("f", "key", Uint8Array.of(1, 2, 3));
  assert.deepEqual([...reply], [1, 2, 3]);
  assert.deepEqual(timing, { queue: 1.5, compute: 20 });
  assert.equal(new Set(state.requests.map((x) => x.headers["Idempotency-Key"])).size, 1);
  assert.match(state.requests[0].headers["Idempotency-Key"], /^"[0-9a-f]{32}"$/);
  const other = world({ refusal: (n) => (n === 1 ? [503, "full", { "Retry-After": "3" }] : null) });
  await other.service.run("f", "key", Uint8Array.of(1));
  assert.deepEqual(other.state.slept, [3]);
});

test("what stays refused is told at once, and waiting ends", async () => {
  for (const status of [401, 404, 410, 422, 428, 500]) {
    const { state, service } = world({ refusal: () => [status, "why"] });
    await assert.rejects(service.run("f", "key", Uint8Array.of(1)), (error) => error.status === status);
    assert.equal(state.requests.length, 1);
  }
  const busy = world({ refusal: () => [503, "full", { "Retry-After": "50" }] });
  await assert.rejects(busy.service.run("f", "key", Uint8Array.of(1)), (error) => error.status === 503);
  assert.deepEqual(busy.state.slept, [50, 50]);
});

test("a signal ends an upload and a request", async () => {
  const control = new AbortController();
  const { service } = world();
  const ended = service.upload("f", new Blob([KEYS]), { signal: control.signal,
    progress: (sent) => { if (sent > 0) control.abort(); } });
  await assert.rejects(ended, (error) => error.name === "AbortError");
  await assert.rejects(service.run("f", "k", Uint8Array.of(1), { signal: control.signal }),
    (error) => error.name === "AbortError");
});

test("answers that are no documents have words, too", async () => {
  const service = new Service({ fetch: async () => new Response("<html>", { status: 502 }) });
  await assert.rejects(service.request("GET", "/x"), (error) =>
    error instanceof Refused && error.message === "the service answered 502");
  assert.deepEqual(timings(null), {});
});

test("keys that are gone already count as deleted", async () => {
  const { service } = world({ refusal: () => [404, "no-keys"] });
  await service.forget("k");
  const other = world({ refusal: () => [500, "internal"] });
  await assert.rejects(other.service.forget("k"), Refused);
});
