// Strokes of a pen as numbers of pixels. Nothing here touches the document, so that Node tests it.

/**
 * @typedef {[number, number]} Point right and down, in units of the pad's side
 * @typedef {Point[]} Stroke
 */

export const PEN = 0.125;  // the width of the pen, in units of the pad's side
const SAMPLES = 4;  // along each side of a pixel

/**
 * How networks are used to see drawings, in units of the picture's side: the height and width that
 * they fill, whether they are squeezed to these, and the part of the pixels that is ink, for
 * which the pen is made wider or narrower; 0 for the pen as it is.
 * Pictures of few pixels are as in the set of digits of the University of California, Irvine, that
 * scikit-learn has; those of more as in MNIST.
 */
export const usual = (side) => (side <= 12
  ? { height: 1, width: 0.7, squeezed: true, ink: 0.3 }
  : { height: 20 / 28, width: 20 / 28, squeezed: false, ink: 0 });
const [NARROWEST, WIDEST] = [0.08, 0.3];  // of pens
const LARGEST_SCALE = 6;  // so that a dot stays one

/** The strokes in the middle of the pad, so that they fill a place of `usual`. */
export function centred(strokes, place, pen) {
  const points = strokes.flat();
  if (points.length === 0) return strokes;
  const [left, right] = ends(points.map((p) => p[0]));
  const [top, bottom] = ends(points.map((p) => p[1]));
  const fitting = (room, length) => (room - pen) / Math.max(length, 1e-9);
  const tall = Math.min(fitting(place.height, bottom - top), LARGEST_SCALE);
  const wide = Math.min(fitting(place.width, right - left), LARGEST_SCALE);
  const least = Math.min(tall, wide);
  const [sx, sy] = place.squeezed ? [least, tall] : [least, least];
  const [x, y] = [(left + right) / 2, (top + bottom) / 2];
  return strokes.map((stroke) => stroke.map(([a, b]) => [0.5 + sx * (a - x), 0.5 + sy * (b - y)]));
}
function ends(numbers) {
  return numbers.reduce(([a, b], x) => [Math.min(a, x), Math.max(b, x)], [Infinity, -Infinity]);
}

/**
 * For each pixel, row by row, how much of it the pen covers, from 0 to 1.
 * @param {Stroke[]} strokes
 * @param {number} rows @param {number} columns
 * @param {{width?: number, centre?: boolean}} [options] width: of the pen. centre: whether the
 *   drawing is brought to the middle and to the size that networks are used to.
 */
export function covered(strokes, rows, columns, { width = PEN, centre = false } = {}) {
  if (!centre) return drawn(strokes, rows, columns, width);
  const place = usual(Math.min(rows, columns));
  const with_ = (pen) => drawn(centred(strokes, place, pen), rows, columns, pen);
  if (place.ink === 0) return with_(PEN * place.height);
  let [low, high] = [NARROWEST, WIDEST];
  for (let k = 0; k < 6; ++k) {
    const pen = (low + high) / 2;
    const ink = with_(pen).reduce((sum, x) => sum + x, 0) / (rows * columns);
    if (ink < place.ink) low = pen;
    else high = pen;
  }
  return with_(low);
}

function drawn(strokes, rows, columns, pen) {
  const [tall, wide] = [rows * SAMPLES, columns * SAMPLES];
  const unit = Math.min(tall, wide);
  const inked = new Uint8Array(tall * wide);
  const radius = (pen * unit) / 2;
  const place = ([x, y]) => [(x - 0.5) * unit + wide / 2 - 0.5, (y - 0.5) * unit + tall / 2 - 0.5];
  for (const stroke of strokes) {
    stroke.forEach((point, k) => {
      ink(inked, wide, tall, place(stroke[Math.max(k - 1, 0)]), place(point), radius);
    });
  }
  const out = new Float64Array(rows * columns);
  inked.forEach((on, at) => {
    const row = Math.floor(at / wide / SAMPLES), column = Math.floor((at % wide) / SAMPLES);
    out[row * columns + column] += on / SAMPLES ** 2;
  });
  return out;
}

/** Sets the samples that are at most `radius` away from the line between two places. */
function ink(inked, wide, tall, [ax, ay], [bx, by], radius) {
  const [left, right] = range(ax, bx, radius, wide), [top, bottom] = range(ay, by, radius, tall);
  const [dx, dy] = [bx - ax, by - ay];
  const square = dx * dx + dy * dy;
  for (let y = top; y <= bottom; ++y) {
    for (let x = left; x <= right; ++x) {
      const along = square === 0 ? 0 : ((x - ax) * dx + (y - ay) * dy) / square;
      const t = Math.min(Math.max(along, 0), 1);
      const [ex, ey] = [x - ax - t * dx, y - ay - t * dy];
      if (ex * ex + ey * ey <= radius * radius) inked[y * wide + x] = 1;
    }
  }
}
function range(a, b, radius, size) {
  return [Math.max(0, Math.ceil(Math.min(a, b) - radius)),
    Math.min(size - 1, Math.floor(Math.max(a, b) + radius))];
}
