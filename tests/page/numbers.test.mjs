// Numbers that a person types, ranges, and words.
import assert from "node:assert/strict";
import { test } from "node:test";

import { check, nameOf, one, several, Unusable } from "../../python/jali/serve/page/numbers.mjs";
import { bytesText, clientWords, numberText, sentence, timeText } from "../../python/jali/serve/page/words.mjs";

const port = (shape, more = {}) => ({ name: "x", shape, columns: [], low: -1, high: 1, ...more });
const unusable = (act, text) => assert.throws(act, (error) =>
  error instanceof Unusable && text.test(error.message));

test("a number of a field", () => {
  for (const [text, x] of [["0.5", 0.5], [" -1e-3 ", -0.001], ["+2", 2], [".5", 0.5], ["3.", 3]]) {
    assert.equal(one(text, "x"), x);
  }
  unusable(() => one(" ", "x[3]"), /x\[3\] is empty/);
  for (const text of ["1,5", "0x10", "Infinity", "NaN", "1e999", "a", "1 2", "--1", "e5"]) {
    unusable(() => one(text, "x"), /write it as/);
  }
});

test("numbers of a text", () => {
  assert.deepEqual([...several("[1, 2;\n3]\t4", port([2, 2]))], [1, 2, 3, 4]);
  unusable(() => several("1 2 3", port([4])), /takes 4 numbers, and these are 3/);
  unusable(() => several("1 2 z", port([3])), /x\[2\]/);
});

test("numbers out of range are refused, and the text does not say them", () => {
  check(Float64Array.of(-1, 0, 1), port([3]));
  unusable(() => check(Float64Array.of(0, 1.23456, 0), port([3])), /^x\[1\] is outside.*-1 to 1\. Nothing was encrypted\.$/);
  assert.throws(() => check(Float64Array.of(0, 1.23456, 0), port([3])), (e) => !e.message.includes("1.23"));
  unusable(() => check(Float64Array.of(NaN), port([1])), /outside/);
  unusable(() => check(Float64Array.of(0, 3), port([2], { low: [0, 0], high: [1, 2] })), /0 to 2/);
});

test("names of numbers", () => {
  assert.equal(nameOf(port([2, 3]), 4), "x[1, 1]");
  assert.equal(nameOf(port([]), 0), "x");
  assert.equal(nameOf(port([2], { columns: ["age", "height"] }), 1), "height");
  assert.equal(nameOf(port([2, 2], { columns: ["age", "height"] }), 3), "height (row 2)");
});

test("words", () => {
  assert.deepEqual([0, 999, 1500, 12.0e6, 3.55e9].map(bytesText), ["0 B", "999 B", "1.50 kB", "12.0 MB", "3.55 GB"]);
  assert.deepEqual([0.42, 12.3, 1500, 32_000, 61_000].map(timeText), ["0.4 ms", "12 ms", "1.50 s", "32.0 s", "1 min 1 s"]);
  assert.deepEqual([0, 1, -0.5, 12.3456, 4096, 1e-9, 1e7].map(numberText), ["0", "1", "-0.5", "12.35", "4096", "1.00e-9", "1.00e+7"]);
  assert.deepEqual(["", "a b", "A."].map(sentence), ["", "A b.", "A."]);
});

test("every error of the client has words that end a sentence", async () => {
  const text = await import("node:fs").then((fs) => fs.readFileSync(
    new URL("../../src/jali/api/wasm/jali.mjs", import.meta.url), "utf8"));
  const Code = Object.fromEntries([...text.matchAll(/([A-Z_]+): (\d+)[,\s]/g)].map((x) => [x[1], Number(x[2])]));
  assert.ok(Object.keys(Code).length >= 12);
  for (const code of Object.values(Code)) {
    assert.ok(sentence(clientWords(code, "the words of the client", Code)).length > 20);
  }
  assert.match(clientWords(Code.WRONG_DECRYPTION, "", Code), /Try another input/);
});
