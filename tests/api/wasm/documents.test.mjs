// The programs of docs/how-to/browser.md run as they stand there, and its figures of the interface hold.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { FOLDER, VECTORS, inFolder, native, read, write } from "./world.mjs";

const PAGE = readFileSync(join(process.env.JALI_SOURCE, "docs/how-to/browser.md"), "utf8");
const BLOCKS = [...PAGE.matchAll(/^```javascript\n([^]*?)^```$/gm)].map((x) => x[1]);

test("the first program and the second", () => inFolder((there) => {
  assert.equal(BLOCKS.length, 2);
  for (const name of ["jali.mjs", "jali.wasm"]) copyFileSync(join(FOLDER, name), join(there, name));
  write(read(VECTORS, "digits", "manifest.jali"), there, "manifest.jali");
  const run = (k) => {
    write(BLOCKS[k], there, `program${k}.mjs`);
    return execFileSync(process.execPath, [`program${k}.mjs`], { cwd: there, encoding: "utf8" });
  };
  assert.match(run(0), /^\d+ keys, \d+ bytes, about [\d.]+ s\nkey 1 of \d+\n/);
  assert.equal(statSync(join(there, "secret_key.jali")).mode & 0o777, 0o600);
  write(new Uint8Array(new Float64Array(64).fill(0.25).buffer), there, "inputs.f64");
  native("answer", there);
  assert.match(run(1), /^logits 1 Float64Array\(10\)/);
}));

test("the worker of the page is a module that uses what there is", async () => {
  const [worker] = [...PAGE.matchAll(/^```text\n(import[^]*?)^```$/gm)].map((x) => x[1]);
  const { Client } = await import(join(FOLDER, "jali.mjs"));
  for (const [, name] of worker.matchAll(/client\.(\w+)\(/g)) {
    assert.equal(typeof Client.prototype[name], "function", name);
  }
  await inFolder((there) => {
    write(worker, there, "client.mjs");
    execFileSync(process.execPath, ["--check", join(there, "client.mjs")]);
  });
});
