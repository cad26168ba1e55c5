// Prints what the page offers to copy, for names that are hard to quote: an array of
// {name, what, mode, cli, curl, go}.
import { commandsOf } from "../web/views/lock/quote.js";

const names = ["orders/42", "-rf", "..", "a b", "it's", `"`, "\\", "$(id)", "`id`", "!x", "%2F", "a?b#c&d=e", "é 名前 😀", "\u2028", "\ufeff", "<img src=x onerror=alert(1)>", "x".repeat(512)];
const all = [];
for (const name of names) {
  for (const mode of ["exclusive", "shared", "semaphore"]) {
    for (const what of ["look", "history", "take", "break"]) {
      const key = `0123456789abcdef-${all.length}`;
      all.push({ name, what, mode, ...commandsOf(what, { name, mode, limit: 3 }, { url: "http://127.0.0.1:7420/ops" }, { token: "17", key }) });
    }
  }
}
console.log(JSON.stringify(all));
