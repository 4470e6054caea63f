// Numbers that a person types, and the ranges that a program takes.
import { numberText } from "./words.mjs";

/** A text that says what to change in an input. */
export class Unusable extends Error {}

/** One number of a list, or of one number for all. */
export const nth = (numbers, k) => (Array.isArray(numbers) ? numbers[k] : numbers);

/** What the k-th number of an input is called. */
export function nameOf(port, k) {
  if (port.columns.length > 0) {
    const column = port.columns[k % port.columns.length];
    return port.shape.length > 1 ? `${column} (row ${Math.floor(k / port.columns.length) + 1})` : column;
  }
  const places = [];
  let rest = k;
  for (const size of [...port.shape].reverse()) {
    places.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return places.length ? `${port.name}[${places.join(", ")}]` : port.name;
}

/** The number of a field. Throws Unusable. */
export function one(text, what) {
  const x = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text.trim()) ? Number(text) : NaN;
  if (text.trim() === "") throw new Unusable(`${what} is empty: give a number.`);
  if (!Number.isFinite(x)) {
    throw new Unusable(`${what} is not a number: write it as 0.5 or -1e-3, with a point.`);
  }
  return x;
}

/** The numbers of a text with white space, commas, semicolons or brackets between. Throws Unusable. */
export function several(text, port) {
  const words = text.split(/[\s,;[\]()]+/).filter((word) => word !== "");
  const size = sizeOf(port);
  if (words.length !== size) {
    throw new Unusable(`${port.name} takes ${size} numbers, and these are ${words.length}.`);
  }
  return Float64Array.from(words, (word, k) => one(word, nameOf(port, k)));
}
export const sizeOf = (port) => port.shape.reduce((product, size) => product * size, 1);

/** Throws Unusable for numbers that a program does not take. The text has none of them. */
export function check(values, port) {
  for (let k = 0; k < values.length; ++k) {
    const [low, high] = [nth(port.low, k), nth(port.high, k)];
    if (!(values[k] >= low && values[k] <= high)) {
      throw new Unusable(`${nameOf(port, k)} is outside of the range that the program takes, ${numberText(low)} to ${numberText(high)}. Nothing was encrypted.`);
    }
  }
}
