// The page: it reads what a person gives, and has the worker encrypt it and ask the service.
import { Unusable } from "./numbers.mjs";
import { Input } from "./input.mjs";
import { find, forgetSteps, made, showBytes, showResults, showStep } from "./view.mjs";
import { bytesText, timeText } from "./words.mjs";

const WITHOUT_ASKING = 64e6;  // bytes of keys that are made and sent when the page opens
const QUESTION = ["Encrypt", "Compute on ciphertexts", "Decrypt"];  // steps of each

const worker = new Worker(new URL("worker.mjs", import.meta.url), { type: "module" });
const waiting = new Map();
let [calls, program, opened, ready, busy] = [0, null, null, null, false];

/** Has the worker do something. Rejects with {kind, text}. */
function call(name, values) {
  return new Promise((resolve, reject) => {
    waiting.set(++calls, { resolve, reject });
    worker.postMessage({ id: calls, call: name, values });
  });
}
worker.onmessage = ({ data }) => {
  if (data.step) showStep(data.step);
  if (data.progress) showProgress(data.progress);
  if (data.sent) showTravel("sent", data.sent);
  if (data.received) showTravel("received", data.received);
  const one = waiting.get(data.id);
  if (!one) return;
  waiting.delete(data.id);
  if (data.error) one.reject(data.error);
  else one.resolve(data.result);
};
worker.onerror = () => trouble("The worker of this page did not start: load the page again, in a browser that knows modules in workers.");

function showProgress({ what, done, total }) {
  Object.assign(find("progress"), { hidden: false, value: done / total });
  say(what === "made" ? `Key ${done} of ${total} is made.` : `${bytesText(done)} of ${bytesText(total)} of keys are sent.`);
}
function showTravel(id, { bytes, sample }) {
  showBytes(find(id), sample);
  find(`${id}-text`).textContent = bytesText(bytes);
}
/** Texts that change often are read aloud at most once a second. */
let [said, later] = [0, 0];
function say(text, soon = false) {
  clearTimeout(later);
  const show = () => {
    find("status").textContent = text;
    said = performance.now();
  };
  if (soon || performance.now() - said > 250) show();
  else later = setTimeout(show, 250);
}
function trouble(text, ...more) {
  const place = find("trouble");
  place.replaceChildren(text, ...more);
  place.hidden = !text;
}
function showError(error) {
  if (error.status === 401) {
    find("login").hidden = false;
    find("token").focus();
    say("The service asks who you are.", true);
    return;
  }
  say(error.kind === "cancelled" ? "Cancelled." : "It did not work.", true);
  if (error.kind === "cancelled") return;
  const full = error.kind === "quota" && made("button", { type: "button", className: "quiet" },
    "Delete all keys that are stored for you, also those of other pages");
  if (full) {
    full.onclick = () => attempt(async () => {
      await call("forget", { all: true });
      await prepare();
    });
  }
  trouble(error.text ?? "Something in this page failed: load it again.", ...(full ? [" ", full] : []));
  if (error.text === undefined) console.error(error);
}

/** Does something, one at a time, and shows what goes wrong. */
async function attempt(act) {
  if (busy) return;
  busy = true;
  find("ask").disabled = true;
  trouble("");
  try {
    await act();
  } catch (error) {
    if (error instanceof Unusable) {
      trouble(error.message);
      say("Nothing was asked.", true);
    } else {
      showError(error);
    }
  } finally {
    busy = false;
    find("progress").hidden = find("cancel").hidden = true;
    find("ask").disabled = !opened;
  }
}

/** Opens a program: keys that are small are made at once. */
async function open(chosen) {
  [program, opened, ready] = [chosen, null, null];
  find("forget").disabled = true;
  find("steps").replaceChildren();
  clearAnswer();
  if (program.refused) throw { text: program.refused };
  input.open(program);
  say("The client loads.", true);
  opened = await call("open", { fingerprint: program.fingerprint });
  find("key-id").textContent = ` (their name begins with ${opened.keyId.slice(0, 8)})`;
  if (opened.cost.sent <= WITHOUT_ASKING) {
    await prepare();
    return;
  }
  find("prepare").hidden = false;
  say(`The program needs ${opened.cost.count} keys of ${bytesText(opened.cost.sent)}, which take about ${timeText(1000 * opened.cost.seconds)} to make.`, true);
}
async function prepare() {
  find("prepare").hidden = true;
  find("cancel").hidden = false;
  say("Keys are made.", true);
  await call("keys");
  ready = opened.keyId;
  find("forget").disabled = false;
  say("Ready: the service has the keys with which it computes, and you have the one that opens.", true);
}

function clearAnswer() {
  find("result").textContent = "";
  find("scores").replaceChildren();
}

const ask = () => attempt(async () => {
  if (!opened) return;
  clearAnswer();
  say("Your input is read.", true);
  const inputs = input.values();
  find("cancel").hidden = false;
  find("prepare").hidden = true;
  forgetSteps(QUESTION);
  say("It is encrypted, and the service computes.", true);
  const began = performance.now();
  const outputs = await call("run", { inputs });
  ready = opened.keyId;
  find("forget").disabled = false;
  say(`Answered after ${timeText(performance.now() - began)}. The service has seen ciphertexts alone.`, true);
  showResults(outputs, program.outputs);
});

const input = new Input({ changed: () => {}, asked: ask });
find("ask").onclick = ask;
find("cancel").onclick = () => worker.postMessage({ call: "cancel" });
find("prepare").onclick = () => attempt(prepare);
find("forget").onclick = () => attempt(async () => {
  await call("forget", {});
  ready = null;
  find("forget").disabled = true;
  say("The service has deleted the keys. The next question sends them again.", true);
});

let token = "";
async function start() {
  const programs = await call("programs", { token });
  find("login").hidden = true;
  if (programs.length === 0) throw { text: "The service has no program." };
  const choice = find("program");
  choice.replaceChildren(...programs.map((one, k) => made("option", { value: String(k) }, one.name)));
  find("choice").hidden = programs.length === 1;
  choice.onchange = () => attempt(() => open(programs[Number(choice.value)]));
  const first = Math.max(0, programs.findIndex((one) => !one.refused));
  choice.value = String(first);
  await open(programs[first]);
}
find("login").onsubmit = (event) => {
  event.preventDefault();
  token = find("token").value.trim();
  find("token").value = "";
  attempt(start);
};
// The keys are of no use when the page is gone. The browser may not send this; then they stay until the
// service needs their room.
addEventListener("pagehide", () => {
  if (!ready) return;
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  fetch(`/v1/keys/${ready}`, { method: "DELETE", headers, keepalive: true }).catch(() => {});
});

attempt(start);
