// Strokes of a pen as pixels.
import assert from "node:assert/strict";
import { test } from "node:test";

import { PEN, centred, covered, usual } from "../../python/jali/serve/page/strokes.mjs";

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const ROUND = Array.from({ length: 41 }, (_, k) =>
  [0.3 + 0.1 * Math.cos(k * Math.PI / 20), 0.6 + 0.15 * Math.sin(k * Math.PI / 20)]);

test("nothing drawn is nothing", () => {
  assert.deepEqual(covered([], 4, 4), new Float64Array(16));
  assert.deepEqual(covered([], 4, 4, { centre: true }), new Float64Array(16));
});

test("pixels lie between 0 and 1, in sixteenths", () => {
  for (const centre of [false, true]) {
    const pixels = covered([ROUND], 28, 28, { centre });
    assert.ok(pixels.every((x) => x >= 0 && x <= 1 && Number.isInteger(16 * x)));
    assert.ok(Math.max(...pixels) === 1);
  }
});

test("a line covers its length times the pen", () => {
  const pixels = covered([[[0.2, 0.5], [0.8, 0.5]]], 64, 64);
  const area = 0.6 * PEN + Math.PI * (PEN / 2) ** 2;
  assert.ok(Math.abs(sum(pixels) / 64 ** 2 - area) < 0.002, `${sum(pixels) / 64 ** 2} ${area}`);
});

test("rows go down and columns to the right", () => {
  const pixels = covered([[[0.9, 0.1]]], 8, 8);
  const at = pixels.indexOf(Math.max(...pixels));
  assert.ok(Math.floor(at / 8) <= 1 && at % 8 >= 6, String(at));
});

test("a drawing is the same wherever and however large it was drawn", () => {
  for (const side of [8, 28]) {
    const first = covered([ROUND], side, side, { centre: true });
    const other = covered([ROUND.map(([x, y]) => [0.1 + 0.5 * x, 0.3 + 0.5 * y])], side, side,
      { centre: true });
    const apart = Math.max(...first.map((x, k) => Math.abs(x - other[k])));
    assert.ok(apart <= 3 / 16, String(apart));  // a sample may fall on the other side
  }
});

test("a drawing fills what networks are used to see", () => {
  const pixels = covered([ROUND], 28, 28, { centre: true });
  const rows = Array.from({ length: 28 }, (_, r) => sum(pixels.subarray(28 * r, 28 * r + 28)) > 0);
  assert.deepEqual([rows.indexOf(true), rows.lastIndexOf(true)], [4, 23]);
  const few = covered([ROUND], 8, 8, { centre: true });
  assert.ok(Math.abs(sum(few) / 64 - usual(8).ink) < 0.03, String(sum(few) / 64));
  assert.ok(few.subarray(0, 8).some((x) => x > 0) && few.subarray(56).some((x) => x > 0));
});

test("a dot stays one, and a picture that is no square is filled in its middle", () => {
  assert.ok(sum(covered([[[0.2, 0.2]]], 28, 28, { centre: true })) < 30);
  const pixels = covered([[[0.5, 0.5]]], 8, 16);
  const at = [3, 4].flatMap((r) => [7, 8].map((c) => pixels[16 * r + c]));
  assert.ok(Math.abs(sum(pixels) - sum(at)) < 1e-12 && new Set(at).size === 1);
  assert.deepEqual(centred([], usual(28), PEN), []);
});
