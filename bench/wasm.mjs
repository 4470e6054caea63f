// What bench/wasm.py runs under Node: node wasm.mjs FOLDER_OF_JALI_MJS FOLDER ROUNDS. It does what
// `wasm_peer times` does (tests/api/wasm/peer.cpp), with the same files.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [wasm, folder, rounds] = process.argv.slice(2);
const { Client } = await import(pathToFileURL(join(wasm, "jali.mjs")).href);
const read = (name) => new Uint8Array(readFileSync(join(folder, name)));
const [manifest, secret, reply] = ["manifest", "secret_key", "reply"].map((x) => read(`${x}.jali`));
const numbers = new Float64Array(read("inputs.f64").slice().buffer);

/** The least processor time of a call, in seconds. */
async function least(count, act) {
  let best = Infinity;
  for (let k = 0; k < count; ++k) {
    const start = process.cpuUsage();
    await act();
    const { user, system } = process.cpuUsage(start);
    best = Math.min(best, user + system);
  }
  return best / 1e6;
}

let client;
const open = await least(rounds, async () => {
  client?.close();
  client = await Client.open(manifest);
  client.readSecret(secret);
});
let at = 0;
const inputs = client.inputs.map(({ size }) => numbers.slice(at, (at += size)));
const cost = client.keyCost();
const keys = await least(rounds, () => client.keys(() => {}, { maxBytes: cost.made }));
const encrypt = await least(20 * rounds, () => client.encrypt(inputs));
const decrypt = await least(20 * rounds, () => client.decrypt(reply));
console.log(JSON.stringify({ open, keys, encrypt, decrypt, key_bytes: cost.sent }));
