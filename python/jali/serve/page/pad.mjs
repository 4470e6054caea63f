// The drawing pad: strokes by finger, pen, mouse or keyboard.
import { PEN } from "./strokes.mjs";

const STEP = 1 / 24;  // of the keyboard's pen, in units of the pad's side
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Pad {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {{changed: () => void, asked: () => void}} on asked: by Enter
   */
  constructor(canvas, on) {
    Object.assign(this, { canvas, on });
    this.strokes = [];
    this.pointer = null;  // which one draws
    this.place = [0.5, 0.5];  // of the keyboard's pen
    this.down = false;
    this.width = PEN;
    canvas.addEventListener("pointerdown", (event) => this.begin(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(end, (event) => {
        if (event.pointerId === this.pointer) this.pointer = null;
      });
    }
    canvas.addEventListener("keydown", (event) => this.key(event));
    for (const seen of ["focus", "blur"]) canvas.addEventListener(seen, () => this.show());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.show());
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  }
  begin(event) {
    if (this.pointer !== null || event.button !== 0) return;
    event.preventDefault();
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    [this.pointer, this.down] = [event.pointerId, false];
    this.strokes.push([this.at(event)]);
    this.changed();
  }
  move(event) {
    if (event.pointerId !== this.pointer) return;
    const all = event.getCoalescedEvents?.() ?? [];
    this.strokes.at(-1).push(...(all.length ? all : [event]).map((one) => this.at(one)));
    this.changed();
  }
  key(event) {
    if (event.key === " ") {
      this.down = !this.down;
      if (this.down) {
        this.strokes.push([[...this.place]]);
        this.changed();
      } else {
        this.show();
      }
    } else if (event.key in ARROWS && !event.ctrlKey && !event.altKey && !event.metaKey) {
      const step = event.shiftKey ? STEP / 4 : STEP;
      this.place = this.place.map((x, k) => Math.min(1, Math.max(0, x + step * ARROWS[event.key][k])));
      if (this.down) {
        this.strokes.at(-1).push([...this.place]);
        this.changed();
      } else {
        this.show();
      }
    } else if (event.key === "Enter") {
      this.on.asked();
    } else {
      return;
    }
    event.preventDefault();
  }
  undo() {
    this.strokes.pop();
    this.down = false;
    this.changed();
  }
  clear() {
    [this.strokes, this.down, this.place] = [[], false, [0.5, 0.5]];
    this.changed();
  }
  changed() {
    this.show();
    this.on.changed();
  }

  show() {
    const { canvas } = this;
    const style = getComputedStyle(canvas);
    const context = canvas.getContext("2d");
    const side = canvas.width;
    context.clearRect(0, 0, side, side);
    Object.assign(context, { lineWidth: this.width * side, lineCap: "round", lineJoin: "round",
      strokeStyle: style.getPropertyValue("--ink") });
    for (const stroke of this.strokes) {
      context.beginPath();
      context.moveTo(stroke[0][0] * side, stroke[0][1] * side);
      for (const [x, y] of stroke) context.lineTo(x * side, y * side);
      context.stroke();
    }
    if (document.activeElement === canvas && this.pointer === null
      && canvas.matches(":focus-visible")) {
      const [x, y] = this.place.map((part) => part * side);
      context.beginPath();
      context.arc(x, y, side / 40, 0, 2 * Math.PI);
      Object.assign(context, { lineWidth: side / 100, fillStyle: style.getPropertyValue("--accent"),
        strokeStyle: style.getPropertyValue("--accent") });
      context.stroke();
      if (this.down) context.fill();
    }
  }
}
