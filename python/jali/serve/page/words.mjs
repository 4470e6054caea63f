// Numbers and errors in words.

/** Bytes with a unit, as 12.0 MB. */
export function bytesText(count) {
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (count >= size) return `${(count / size).toPrecision(3)} ${unit}`;
  }
  return `${count} B`;
}

/** Milliseconds with a unit. */
export function timeText(ms) {
  if (ms >= 59_950) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
  if (ms >= 1000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

/** A number with about four digits. */
export function numberText(x) {
  if (x === 0 || (Math.abs(x) >= 1e-3 && Math.abs(x) < 1e5)) {
    return String(Number(x.toFixed(Math.max(0, 3 - Math.max(0, Math.floor(Math.log10(Math.abs(x) || 1)))))));
  }
  return x.toExponential(2);
}

/** A sentence with a capital letter and a full stop. */
export function sentence(text) {
  const trimmed = text.trim();
  if (!trimmed) return "";
  const begun = trimmed[0].toUpperCase() + trimmed.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

/** What a person is told of an error of the client, whose codes jali.mjs names. */
export function clientWords(code, text, Code) {
  switch (code) {
    case Code.WRONG_DECRYPTION:
      return "The answer cannot be used: your input is unlike those for which the program was made, or the answer was changed on its way. Try another input.";
    case Code.INSECURE:
      return `This page does not encrypt for the program, because its encryption is weaker than 128 bits: ${text}`;
    case Code.LIMIT_EXCEEDED:
      return `The program wants more keys than this page makes. Use jali.Remote of the Python package. (${text})`;
    case Code.OUT_OF_MEMORY:
      return "The browser has too little memory for this program: close other pages and load this one again, or use jali.Remote of the Python package.";
    case Code.VERSION:
      return `The page and the program are of different versions of Jali: ${text}`;
    case Code.KEY_MISMATCH: case Code.PARAMS_MISMATCH: case Code.CORRUPT_DATA:
      return `The service sent what this page cannot use: ${text}`;
    default:
      return text;
  }
}
