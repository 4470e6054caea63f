// What the page shows: pixels, noise, steps, scores.
import { bytesText, numberText, timeText } from "./words.mjs";

export const find = (id) => document.getElementById(id);

/** An element with texts and elements in it. */
export function made(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** Draws parts of the range, 0 to 1, by channel, row and column. */
export function showPixels(canvas, parts, { rows, columns, channels }) {
  Object.assign(canvas, { width: columns, height: rows });
  const image = new ImageData(columns, rows);
  const area = rows * columns;
  for (let k = 0; k < area; ++k) {
    for (let c = 0; c < 3; ++c) {
      image.data[4 * k + c] = Math.round(255 * parts[(channels === 3 ? c * area : 0) + k]);
    }
    image.data[4 * k + 3] = 255;
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** Draws bytes as grey pixels, row by row. */
export function showBytes(canvas, bytes) {
  const side = 96;
  const image = new ImageData(side, side);
  bytes.slice(0, side * side).forEach((x, k) => { image.data.set([x, x, x, 255], 4 * k); });
  canvas.getContext("2d").putImageData(image, 0, 0);
}

const PLACES = { page: "in this page", wire: "on the wire", service: "at the service" };
let [up, down] = [0, 0];

/** Adds a line to the table of steps. */
export function showStep({ name, where, ms, up: sent, down: received, timing }) {
  up += sent;
  down += received;
  const cell = (text) => made("td", {}, text);
  const bytes = (count) => cell(count ? bytesText(count) : "");
  const line = made("tr", {}, made("th", { scope: "row" }, name), cell(PLACES[where]),
    cell(timeText(ms)), bytes(sent), bytes(received));
  line.dataset.step = name;
  find("steps").append(line);
  for (const [part, words] of [["queue", "waiting"], ["load", "getting the keys"], ["compute", "computing"]]) {
    if (timing?.[part] === undefined) continue;
    const row = made("tr", { className: "part" },
      made("th", { scope: "row" }, words), cell(PLACES.service), cell(timeText(timing[part])),
      cell(""), cell(""));
    find("steps").append(row);
  }
  find("all-up").textContent = bytesText(up);
  find("all-down").textContent = bytesText(down);
}

/** Removes the lines of the last question. */
export function forgetSteps(names) {
  let removing = false;
  for (const line of [...find("steps").rows]) {
    if (!line.classList.contains("part")) removing = names.includes(line.dataset.step);
    if (removing) line.remove();
  }
}

const DRAWN = 100;  // scores as bars

/** Shows the results: the largest of several scores, or the numbers. */
export function showResults(outputs, ports) {
  const [result, list] = [find("result"), find("scores")];
  list.replaceChildren();
  result.textContent = "";
  const scores = outputs.length === 1 && outputs[0].length > 1 && outputs[0].length <= DRAWN;
  if (scores) {
    const [numbers, names] = [Array.from(outputs[0]), ports[0].columns];
    const best = numbers.indexOf(Math.max(...numbers));
    const [least, most] = [Math.min(...numbers, 0), Math.max(...numbers, 0)];
    const named = (k) => names[k] ?? String(k);
    result.append(made("span", { className: "best" }, named(best)), made("span", { className: "hint" }, " has the largest score"));
    numbers.forEach((x, k) => {
      const bar = made("span", { className: "bar" });
      const width = most - least || 1;
      bar.style.setProperty("--from", String((Math.min(x, 0) - least) / width));
      bar.style.setProperty("--to", String((Math.max(x, 0) - least) / width));
      const line = made("li", { className: k === best ? "chosen" : "" },
        made("span", { className: "name" }, named(k)), made("span", { className: "track" }, bar),
        made("span", { className: "score" }, numberText(x)));
      line.dataset.score = String(x);
      list.append(line);
    });
    return;
  }
  outputs.forEach((numbers, k) => {
    const { name, columns } = ports[k];
    Array.from(numbers.subarray(0, DRAWN)).forEach((x, n) => {
      const words = columns.length ? columns[n % columns.length]
        : numbers.length === 1 ? name : `${name}[${n}]`;
      const line = made("li", { className: "plain" }, made("span", { className: "name" }, words),
        made("span", { className: "score" }, numberText(x)));
      line.dataset.score = String(x);
      list.append(line);
    });
    if (numbers.length > DRAWN) {
      list.append(made("li", { className: "hint" }, `and ${numbers.length - DRAWN} more`));
    }
  });
}
