// Pictures as pixels, and which inputs are pictures.
import assert from "node:assert/strict";
import { test } from "node:test";

import {
  averaged, boxOf, darkOnLight, light, partsOf, pictureOf, scaled,
} from "../../python/jali/serve/page/pixels.mjs";

const port = (shape, more = {}) => ({ name: "x", shape, columns: [], low: 0, high: 1, ...more });
/** A picture of RGBA whose pixels are what act(column, row) gives. */
function image(width, height, act) {
  const data = new Uint8ClampedArray(4 * width * height);
  for (let k = 0; k < width * height; ++k) data.set(act(k % width, Math.floor(k / width)), 4 * k);
  return { data, width };
}
const WHITE = [255, 255, 255, 255], BLACK = [0, 0, 0, 255];

test("which inputs are pictures", () => {
  const of = (shape, more) => pictureOf(port(shape, more));
  assert.deepEqual(of([1, 8, 8]), { rows: 8, columns: 8, channels: 1, last: false });
  assert.deepEqual(of([32, 30, 3]), { rows: 32, columns: 30, channels: 3, last: true });
  assert.deepEqual(of([64]), { rows: 8, columns: 8, channels: 1, last: false });
  assert.deepEqual(of([28, 28]), { rows: 28, columns: 28, channels: 1, last: false });
  for (const shape of [[], [3], [49], [65], [4, 5], [2, 8, 8], [1, 2, 2]]) {
    assert.equal(of(shape), null, String(shape));
  }
  assert.equal(of([64], { columns: Array(64).fill("a") }), null);
});

test("parts of the range become numbers of the input", () => {
  const grey = pictureOf(port([8, 8]));
  assert.deepEqual([...scaled(new Float64Array(64).fill(0.5), grey, port([8, 8], { low: -2, high: 4 }))],
    Array(64).fill(1));
  const shape = [4, 4, 3];
  const high = Array.from({ length: 48 }, (_, k) => 1 + (k % 3));
  const parts = Float64Array.from({ length: 48 }, (_, k) => [1, 0.5, 0][Math.floor(k / 16)]);
  const found = scaled(parts, pictureOf(port(shape)), port(shape, { high }));
  assert.deepEqual([...found.subarray(0, 6)], [1, 1, 0, 1, 1, 0]);
});

test("pixels of another size are means", () => {
  const plane = Float64Array.from({ length: 16 }, (_, k) => k);
  assert.deepEqual([...averaged(plane, 4, [0, 0, 4, 4], 2, 2)], [2.5, 4.5, 10.5, 12.5]);
  assert.deepEqual([...averaged(plane, 4, [0, 0, 4, 4], 4, 4)], [...plane]);
  assert.deepEqual([...averaged(plane, 4, [-4, 0, 4, 4], 1, 2, 1)], [1, 7.5]);
  const third = averaged(Float64Array.of(0, 3), 2, [0, 0, 2, 1], 1, 3);
  assert.ok(Math.abs(third[0]) + Math.abs(third[1] - 1.5) + Math.abs(third[2] - 3) < 1e-12);
});

test("colours, transparency and what is dark", () => {
  assert.deepEqual([...light(Uint8ClampedArray.of(...BLACK, ...WHITE, 0, 0, 0, 0))], [0, 1, 1]);
  const paper = image(9, 9, (x, y) => (x === 4 && y > 1 && y < 7 ? BLACK : WHITE));
  assert.ok(darkOnLight(light(paper.data), 9));
  assert.ok(!darkOnLight(light(paper.data).map((x) => 1 - x), 9));
  assert.deepEqual(boxOf(light(paper.data).map((x) => 1 - x), 9), [4, 2, 5, 7]);
  assert.deepEqual(boxOf(new Float64Array(6), 3), [0, 0, 3, 2]);
});

test("a picture of a digit is the same wherever it lies on its paper", () => {
  const seven = (left, top, size) => image(100, 80, (x, y) => {
    const [a, b] = [(x - left) / size, (y - top) / size];
    const on = a >= 0 && a < 1 && b >= 0 && b < 1.5 && (b < 0.3 || a >= 0.7);
    return on ? BLACK : WHITE;
  });
  const options = { invert: true, crop: true };
  for (const side of [8, 28]) {
    const picture = { rows: side, columns: side, channels: 1 };
    const [first, other] = [[10, 10, 40], [50, 5, 20]].map((x) => partsOf(seven(...x), picture, options));
    assert.ok(first.every((x, k) => Math.abs(x - other[k]) < 1e-9));
    assert.ok(Math.max(...first) > 0.99 && Math.min(...first) >= 0);
  }
});

test("colours keep their channels, and the middle of a long picture is taken", () => {
  const flag = image(12, 4, (x) => (x < 4 ? [255, 0, 0, 255] : x < 8 ? [0, 255, 0, 255] : [0, 0, 255, 255]));
  const parts = partsOf(flag, { rows: 4, columns: 4, channels: 3 });
  assert.deepEqual([...parts], [...Array(16).fill(0), ...Array(16).fill(1), ...Array(16).fill(0)]);
});
