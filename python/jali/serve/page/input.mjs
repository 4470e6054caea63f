// The input of a person: a drawing, a picture or numbers, as numbers for each input of a program.
import { check, nameOf, nth, one, several, sizeOf, Unusable } from "./numbers.mjs";
import { Pad } from "./pad.mjs";
import { darkOnLight, light, partsOf, pictureOf, scaled } from "./pixels.mjs";
import { covered } from "./strokes.mjs";
import { find, made, showPixels } from "./view.mjs";
import { numberText } from "./words.mjs";

const FIELDS = 40;  // numbers with a field of their own
const LARGEST_SIDE = 1024;  // to which pictures are made smaller when they are read

export class Input {
  /** @param {{changed: () => void, asked: () => void}} on */
  constructor(on) {
    this.on = on;
    this.inputs = [];
    this.picture = null;
    this.image = null;
    this.pad = new Pad(find("pad"), { changed: () => this.changed(), asked: on.asked });
    find("undo").onclick = () => this.pad.undo();
    find("clear").onclick = () => this.pad.clear();
    for (const id of ["centre", "invert", "crop"]) find(id).onchange = () => this.changed();
    for (const radio of document.querySelectorAll("input[name=way]")) {
      radio.onchange = () => this.choose(radio.value);
    }
    find("values").ontoggle = () => this.changed();
    find("numbers").addEventListener("input", () => this.changed());
    find("numbers").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.target.tagName === "INPUT") on.asked();
    });
    find("file").onchange = ({ target }) => this.read(target.files[0]);
    const drop = find("drop");
    drop.ondragover = (event) => event.preventDefault();
    drop.ondrop = (event) => {
      event.preventDefault();
      this.read(event.dataTransfer.files[0]);
    };
    document.addEventListener("paste", (event) => {
      if (this.way === "picture" && event.clipboardData.files[0]) this.read(event.clipboardData.files[0]);
    });
  }

  /** Shows what a program takes. */
  open({ inputs, sentence }) {
    this.inputs = inputs;
    this.image = null;
    this.picture = inputs.length === 1 ? pictureOf(inputs[0]) : null;
    const grey = this.picture?.channels === 1;
    find("task").textContent = sentence || (grey ? "Draw what the program knows, or give it a picture."
      : this.picture ? "Give a picture." : "Fill in the numbers.");
    find("ways").hidden = !this.picture;
    for (const radio of document.querySelectorAll("input[name=way]")) {
      radio.parentElement.hidden = radio.value === "draw" && !grey;
    }
    for (const id of ["invert-label", "crop-label"]) find(id).hidden = !grey;
    find("numbers").replaceChildren(...inputs.map(fields));
    this.pad.clear();
    this.choose(this.picture ? (grey ? "draw" : "picture") : "numbers");
  }
  choose(way) {
    this.way = way;
    for (const radio of document.querySelectorAll("input[name=way]")) radio.checked = radio.value === way;
    for (const id of ["draw", "picture", "numbers"]) find(id).hidden = id !== way;
    find("seen").hidden = way === "numbers";
    this.changed();
  }
  async read(file) {
    if (!file) return;
    try {
      const bitmap = await createImageBitmap(file);
      const scale = Math.min(1, LARGEST_SIDE / Math.max(bitmap.width, bitmap.height));
      const [width, height] = [bitmap.width, bitmap.height].map((x) => Math.max(1, Math.round(scale * x)));
      const canvas = made("canvas", { width, height });
      const context = canvas.getContext("2d", { willReadFrequently: true });
      context.drawImage(bitmap, 0, 0, width, height);
      bitmap.close();
      this.image = context.getImageData(0, 0, width, height);
      find("invert").checked = darkOnLight(light(this.image.data), width);
      find("drop").firstElementChild.textContent = `${file.name}, ${width} × ${height} pixels`;
    } catch {
      this.image = null;
      find("drop").firstElementChild.textContent = "This file is no picture that the browser reads: choose another";
    }
    this.changed();
  }

  /** Parts of the range by channel, row and column, or null if nothing is given yet. */
  parts() {
    const { picture } = this;
    if (this.way === "draw") {
      return this.pad.strokes.length === 0 ? null
        : covered(this.pad.strokes, picture.rows, picture.columns, { centre: find("centre").checked });
    }
    return this.image && partsOf(this.image, picture,
      { invert: find("invert").checked, crop: find("crop").checked });
  }
  /** Numbers for each input, checked. Throws Unusable. */
  values() {
    if (this.way === "numbers") {
      return this.inputs.map((port, k) => {
        const group = find("numbers").children[k];
        const boxes = [...group.querySelectorAll("input")];
        const values = boxes.length
          ? Float64Array.from(boxes, (box, n) => one(box.value, nameOf(port, n)))
          : several(group.querySelector("textarea").value, port);
        check(values, port);
        return values;
      });
    }
    const parts = this.parts();
    if (!parts) {
      throw new Unusable(this.way === "draw" ? "Draw something first." : "Choose a picture first.");
    }
    const values = scaled(parts, this.picture, this.inputs[0]);
    check(values, this.inputs[0]);
    return [values];
  }

  /** Shows what would be encrypted. */
  changed() {
    if (this.way !== "numbers" && this.picture) {
      const { rows, columns, channels } = this.picture;
      const parts = this.parts() ?? new Float64Array(rows * columns * channels);
      showPixels(find("preview"), parts, this.picture);
      find("seen-text").textContent = `${rows} × ${columns} pixels${channels === 3 ? " of three colours" : ""} are encrypted, as ${parts.length} numbers.`;
    }
    if (find("values").open) {
      let text;
      try {
        text = this.values().map((numbers, k) => lines(numbers, this.inputs[k])).join("\n\n");
      } catch (error) {
        if (!(error instanceof Unusable)) throw error;
        text = error.message;
      }
      find("values-text").textContent = text;
    }
    this.on.changed();
  }
}

/** Fields for the numbers of an input. */
function fields(port) {
  const size = sizeOf(port);
  const group = made("fieldset", { className: "group" }, made("legend", {}, port.name));
  const range = (k) => `${numberText(nth(port.low, k))} to ${numberText(nth(port.high, k))}`;
  if (size > FIELDS) {
    group.append(made("label", {}, `${size} numbers, with spaces or commas between`,
      made("textarea", { rows: 6, spellcheck: false, autocomplete: "off" })));
    return group;
  }
  for (let k = 0; k < size; ++k) {
    group.append(made("label", { className: "number" }, made("span", {}, nameOf(port, k)),
      made("input", { type: "text", inputMode: "text", autocomplete: "off", placeholder: range(k) })));
  }
  return group;
}

function lines(numbers, port) {
  const wide = port.shape.at(-1) ?? 1;
  const words = Array.from(numbers, (x) => String(Number(x.toFixed(6))));
  return Array.from({ length: Math.ceil(words.length / wide) }, (_, k) =>
    words.slice(k * wide, (k + 1) * wide).join(" ")).join("\n");
}
