// Pictures as numbers of pixels. Nothing here touches the document, so that Node tests it.
import { nth } from "./numbers.mjs";
import { usual } from "./strokes.mjs";

/**
 * How an input is a picture; null if it is none.
 * @returns {{rows: number, columns: number, channels: number, last: boolean} | null} last: whether
 *   the channels are the last axis
 */
export function pictureOf({ shape, columns: named }) {
  if (named.length > 0) return null;
  const sides = (rows, columns) => Math.min(rows, columns) >= 4 && Math.max(rows, columns) <= 1024;
  const colours = (n) => n === 1 || n === 3;
  if (shape.length === 3) {
    const [a, b, c] = shape;
    if (colours(a) && sides(b, c)) return { rows: b, columns: c, channels: a, last: false };
    if (colours(c) && sides(a, b)) return { rows: a, columns: b, channels: c, last: true };
  }
  const side = shape.length === 2 && shape[0] === shape[1] ? shape[0]
    : shape.length === 1 ? Math.sqrt(shape[0]) : 0;
  return Number.isInteger(side) && side >= 8 && side <= 1024
    ? { rows: side, columns: side, channels: 1, last: false } : null;
}

/** From parts of the range, 0 to 1, by channel, row and column, to the numbers of an input. */
export function scaled(parts, picture, port) {
  const { rows, columns, channels, last } = picture;
  const out = new Float64Array(parts.length);
  const area = rows * columns;
  for (let k = 0; k < out.length; ++k) {
    const from = last ? (k % channels) * area + Math.floor(k / channels) : k;
    const [low, high] = [nth(port.low, k), nth(port.high, k)];
    out[k] = Math.min(high, Math.max(low, low + parts[from] * (high - low)));
  }
  return out;
}

/** How light each pixel is, from 0 to 1, on white where it is transparent. */
export function light(rgba) {
  const out = new Float64Array(rgba.length / 4);
  for (let k = 0; k < out.length; ++k) {
    const [r, g, b, a] = rgba.subarray(4 * k, 4 * k + 4);
    out[k] = ((0.299 * r + 0.587 * g + 0.114 * b) / 255 - 1) * (a / 255) + 1;
  }
  return out;
}

/** Whether a picture is dark on light: its border is light. */
export function darkOnLight(plane, wide) {
  const tall = plane.length / wide;
  let [sum, count] = [0, 0];
  for (let k = 0; k < plane.length; ++k) {
    const [x, y] = [k % wide, Math.floor(k / wide)];
    if (x === 0 || y === 0 || x === wide - 1 || y === tall - 1) {
      sum += plane[k];
      count += 1;
    }
  }
  return sum > count / 2;
}

/** The box [left, top, right, bottom] of what is lighter than half of the lightest pixel. */
export function boxOf(plane, wide) {
  const least = plane.reduce((a, b) => Math.max(a, b), 0) / 2;
  let [left, top, right, bottom] = [Infinity, Infinity, -1, -1];
  plane.forEach((x, k) => {
    if (x <= least) return;
    const [column, row] = [k % wide, Math.floor(k / wide)];
    left = Math.min(left, column);
    right = Math.max(right, column + 1);
    top = Math.min(top, row);
    bottom = Math.max(bottom, row + 1);
  });
  return right < 0 ? [0, 0, wide, plane.length / wide] : [left, top, right, bottom];
}

/**
 * Pixels of another size: each is the mean of what it covers. What lies outside is `around`.
 * @param {Float64Array} plane @param {number} wide
 * @param {[number, number, number, number]} box the part of the plane that fills the rows and
 *   columns: left, top, right, bottom; it may reach beyond the plane
 */
export function averaged(plane, wide, box, rows, columns, around = 0) {
  const tall = plane.length / wide;
  const [left, top, right, bottom] = box;
  const across = shares(left, right, columns, wide), down = shares(top, bottom, rows, tall);
  const out = new Float64Array(rows * columns);
  for (let row = 0; row < rows; ++row) {
    for (let column = 0; column < columns; ++column) {
      let [sum, weight] = [0, 0];
      for (const [y, wy] of down[row]) {
        for (const [x, wx] of across[column]) {
          sum += wx * wy * plane[y * wide + x];
          weight += wx * wy;
        }
      }
      out[row * columns + column] = sum + (1 - weight) * around;
    }
  }
  return out;
}
/** For each of `count` pixels between two ends, which of `size` pixels it covers, and its share. */
function shares(from, to, count, size) {
  const step = (to - from) / count;
  return Array.from({ length: count }, (_, k) => {
    const [a, b] = [from + k * step, from + (k + 1) * step];
    const found = [];
    for (let x = Math.max(0, Math.floor(a)); x < Math.min(size, Math.ceil(b)); ++x) {
      found.push([x, (Math.min(b, x + 1) - Math.max(a, x)) / step]);
    }
    return found;
  });
}

/**
 * A picture as a program takes it: parts of the range by channel, row and column.
 * @param {{data: Uint8ClampedArray, width: number}} image of RGBA
 * @param {{rows: number, columns: number, channels: number}} picture
 * @param {{invert?: boolean, crop?: boolean}} [options] for one channel. invert: dark is 1. crop:
 *   what is light is centred and scaled.
 */
export function partsOf({ data, width }, picture, { invert = false, crop = false } = {}) {
  const { rows, columns, channels } = picture;
  const height = data.length / 4 / width;
  const middle = [0, 0, width, height];
  const wanted = columns / rows;
  if (width / height > wanted) {
    middle[0] = (width - height * wanted) / 2;
    middle[2] = width - middle[0];
  } else {
    middle[1] = (height - width / wanted) / 2;
    middle[3] = height - middle[1];
  }
  if (channels === 3) {
    const out = new Float64Array(3 * rows * columns);
    for (let channel = 0; channel < 3; ++channel) {
      const plane = Float64Array.from({ length: data.length / 4 }, (_, k) =>
        (data[4 * k + channel] / 255 - 1) * (data[4 * k + 3] / 255) + 1);
      out.set(averaged(plane, width, middle, rows, columns, 1), channel * rows * columns);
    }
    return out;
  }
  let plane = light(data);
  if (invert) plane = plane.map((x) => 1 - x);
  if (!crop) return averaged(plane, width, middle, rows, columns);
  const box = boxOf(plane, width);
  const most = plane.reduce((a, b) => Math.max(a, b), 0) || 1;
  plane = plane.map((x) => x / most);
  return averaged(plane, width, around(box, rows, columns), rows, columns);
}
/** The part of a plane that fills a picture, so that a box fills the usual part of that. */
function around([left, top, right, bottom], rows, columns) {
  const place = usual(Math.min(rows, columns));
  const side = Math.min(rows, columns);
  const [wide, tall] = [right - left, bottom - top];
  const x = Math.max(wide / place.width, tall / place.height);
  const y = place.squeezed ? Math.max(tall / place.height, x / 4) : x;
  const [cx, cy] = [(left + right) / 2, (top + bottom) / 2];
  const [half, up] = [(x * columns) / side / 2, (y * rows) / side / 2];
  return [cx - half, cy - up, cx + half, cy + up];
}
